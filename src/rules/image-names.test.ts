// Valid names of images and ISOs.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isImageName, nameOfFile } from './image-names.ts'

describe('names of images', () => {
  it('names of images may have lowercase letters, digits, dashes and periods, up to 63 with the extension', () => {
    for (const name of [
      'sonoma',
      'a',
      '0',
      'macos-14.2.img',
      `${'a'.repeat(59)}.iso`,
      'x..y',
      'ends.',
      '.img',
      '...',
      '-img',
      '--',
    ])
      assert.ok(isImageName(name), name)
  })

  it('names of images have nothing else, especially no paths', () => {
    const bad = ['', '.', '..', 'a/b', '../x', 'a\\b', 'A', 'a b', 'ü', 'a\0', 'a\n', `${'a'.repeat(60)}.iso`]
    for (const name of bad) assert.ok(!isImageName(name), JSON.stringify(name))
  })

  it('the default name of an image is that of the file without folders', () => {
    assert.equal(nameOfFile('/home/ada/disk.img'), 'disk.img')
    assert.equal(nameOfFile('C:\\disks\\disk.img'), 'disk.img')
    assert.equal(nameOfFile('disk.img'), 'disk.img')
    assert.equal(nameOfFile('../..'), '..')
  })
})
