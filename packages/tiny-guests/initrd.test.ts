// The archive reads back as it was written.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cpioArchive } from './initrd.ts'
import { Tree } from './tree.ts'

interface Member {
  readonly name: string
  readonly mode: number
  readonly data: string
  readonly device: [number, number]
}

/** As in the kernel's init/initramfs.c. */
function readArchive(bytes: Buffer): Member[] {
  const members: Member[] = []
  for (let at = 0; ; ) {
    assert.equal(at % 4, 0)
    assert.equal(bytes.toString('latin1', at, at + 6), '070701')
    const field = (index: number): number =>
      Number.parseInt(bytes.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16)
    const [size, nameSize] = [field(6), field(11)]
    const name = bytes.toString('utf8', at + 110, at + 110 + nameSize - 1)
    const start = Math.ceil((at + 110 + nameSize) / 4) * 4
    if (name === 'TRAILER!!!') return members
    const data = bytes.toString('utf8', start, start + size)
    members.push({ name, mode: field(1), data, device: [field(9), field(10)] })
    at = Math.ceil((start + size) / 4) * 4
  }
}

describe('cpioArchive', () => {
  const tree = new Tree()
    .script('init', '#!/bin/sh\n')
    .file('etc/five', '12345')
    .file('etc/empty', '')
    .link('lib', 'usr/lib')
    .add('dev/console', { kind: 'device', major: 5, minor: 1, mode: 0o600 })

  it('cpioArchive has every member with its type, mode and contents, folders first', () => {
    const none: [number, number] = [0, 0]
    assert.deepEqual(readArchive(cpioArchive(tree)), [
      { name: 'dev', mode: 0o040755, data: '', device: none },
      { name: 'dev/console', mode: 0o020600, data: '', device: [5, 1] },
      { name: 'etc', mode: 0o040755, data: '', device: none },
      { name: 'etc/empty', mode: 0o100644, data: '', device: none },
      { name: 'etc/five', mode: 0o100644, data: '12345', device: none },
      { name: 'init', mode: 0o100755, data: '#!/bin/sh\n', device: none },
      { name: 'lib', mode: 0o120777, data: 'usr/lib', device: none },
    ])
  })

  it('cpioArchive is the same for the same tree', () => assert.ok(cpioArchive(tree).equals(cpioArchive(tree))))
})
