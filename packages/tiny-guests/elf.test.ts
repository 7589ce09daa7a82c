// Programs and modules are read as the loader and the kernel read them.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, it } from 'node:test'
import { appletsOf } from './applets.ts'
import { copyWithLibraries, isElf, neededBy } from './elf.ts'
import { informationOf, unsigned } from './kernel.ts'
import { Tree } from './tree.ts'

describe('neededBy', () => {
  it('neededBy finds the libraries of a real program', () => {
    const program = fs.readFileSync(process.execPath)
    assert.ok(isElf(program))
    assert.ok(neededBy(program).includes('libc.so.6'), neededBy(program).join(' '))
  })
})

describe('copyWithLibraries', () => {
  const program = fs.readFileSync('/bin/sh')
  const packages = new Tree()
    .file('usr/bin/dash', program, 0o755)
    .link('usr/bin/sh', '/bin/dash')
    .file('usr/lib/libc.so.7', 'library')
    .link('usr/lib/libc.so.6', 'libc.so.7')

  it('copyWithLibraries follows links and takes what is needed', () => {
    const image = new Tree()
    copyWithLibraries(packages, image, ['usr/bin/sh'], ['usr/lib'])
    for (const name of ['usr/bin/sh', 'usr/bin/dash']) assert.ok(image.has(name), name)
    assert.ok(image.has('usr/lib/libc.so.6'))
  })

  it('copyWithLibraries says what is missing', () => {
    assert.throws(() => copyWithLibraries(packages, new Tree(), ['usr/bin/sh'], ['elsewhere']), /needs libc\.so\.6/)
    assert.throws(() => copyWithLibraries(packages, new Tree(), ['usr/bin/none'], []), /no \/usr\/bin\/none/)
  })
})

describe('modules', () => {
  const body = Buffer.from('\x7fELF...\0depends=a,b-c\0alias=pci:v1*\0alias=x\0vermagic=6.1\0')
  const info = Buffer.alloc(12)
  info.writeUInt32BE(5, 8)
  const signed = Buffer.concat([body, Buffer.from('SIGNS'), info, Buffer.from('~Module signature appended~\n')])

  it('modules lose their signature and nothing else', () => {
    assert.ok(unsigned(signed).equals(body))
    assert.ok(unsigned(body).equals(body))
  })

  it('modules tell what they need and what they are for', () => {
    assert.deepEqual(informationOf(body, 'depends'), ['a,b-c'])
    assert.deepEqual(informationOf(body, 'alias'), ['pci:v1*', 'x'])
    assert.deepEqual(informationOf(body, 'license'), [])
  })
})

describe('appletsOf', () => {
  it('appletsOf reads the table, and refuses a program without one', () => {
    assert.deepEqual(appletsOf(Buffer.from('xx\0[\0[[\0cat\0sh\0\0yy')), ['[', '[[', 'cat', 'sh'])
    assert.throws(() => appletsOf(Buffer.from('xx')), /no table of commands/)
  })
})
