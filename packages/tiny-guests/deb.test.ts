// Real packages from dpkg-deb are read completely: long names, links, modes, and only what is requested.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { mergedPath, unpack } from './deb.ts'
import { Tree } from './tree.ts'

const { signal } = new AbortController()
const longName = `usr/share/${'deep/'.repeat(30)}file`

function makePackage(t: TestContext, compression = '-Zxz'): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-deb-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const inside = (name: string): string => path.join(folder, 'package', name)
  const write = (name: string, data: string | Buffer, mode: number): void => {
    fs.mkdirSync(path.dirname(inside(name)), { recursive: true })
    fs.writeFileSync(inside(name), data)
    fs.chmodSync(inside(name), mode)
  }
  fs.mkdirSync(path.join(folder, 'package'))
  write(
    'DEBIAN/control',
    'Package: sample\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n',
    0o644,
  )
  fs.chmodSync(inside('DEBIAN'), 0o755)
  write('sbin/tool', '#!/bin/sh\n', 0o755)
  write('usr/bin/big', Buffer.alloc(300_001, 'x'), 0o4755)
  write(longName, 'far down', 0o644)
  fs.symlinkSync('big', inside('usr/bin/link'))
  fs.linkSync(inside('usr/bin/big'), inside('usr/bin/same'))
  const deb = path.join(folder, 'sample.deb')
  const args = ['--root-owner-group', compression, '--build', path.join(folder, 'package'), deb]
  execFileSync('dpkg-deb', args, { stdio: 'ignore' })
  return deb
}

describe('unpack', () => {
  it('unpack reads files, links, long names and modes', async (t) => {
    const tree = new Tree()
    await unpack(makePackage(t), tree, () => true, signal)
    const files = tree.sorted().filter(([, { kind }]) => kind !== 'folder')
    const [big, same] = ['usr/bin/big', 'usr/bin/same'].map((name) => tree.get(name))
    assert.deepEqual(
      files.map(([name]) => name),
      ['usr/bin/big', 'usr/bin/link', 'usr/bin/same', 'usr/bin/tool', longName],
    )
    // dpkg-deb decides which of two names of one file comes first.
    const [real, other] = big?.kind === 'file' ? [big, same] : [same, big]
    assert.ok(real?.kind === 'file' && real.data.length === 300_001 && real.mode === 0o4755)
    assert.ok(other?.kind === 'link' && other.target.startsWith('/usr/bin/'))
    const deep = tree.get(longName)
    assert.ok(deep?.kind === 'file' && Buffer.from(deep.data).toString() === 'far down')
  })

  it('unpack takes only what is wanted', async (t) => {
    const tree = new Tree()
    await unpack(makePackage(t), tree, (name) => name === 'usr/bin/tool', signal)
    assert.deepEqual(
      tree.sorted().map(([name]) => name),
      ['usr', 'usr/bin', 'usr/bin/tool'],
    )
  })

  it('unpack refuses what is not a package', async (t) => {
    const deb = makePackage(t)
    fs.truncateSync(deb, 600)
    await assert.rejects(
      unpack(deb, new Tree(), () => true, signal),
      /dpkg-deb failed/,
    )
  })

  it('unpack refuses a package with a damaged archive in it, and says what to do', async (t) => {
    const deb = makePackage(t, '-Znone')
    const bytes = fs.readFileSync(deb)
    bytes.write('X', bytes.indexOf('./usr/bin/big'))
    fs.writeFileSync(deb, bytes)
    await assert.rejects(
      unpack(deb, new Tree(), () => true, signal),
      /sample\.deb is damaged .*; remove it and download it again/,
    )
  })

  it('unpack ends when its signal does', async (t) => {
    const stop = new AbortController()
    const isWanted = (): boolean => {
      stop.abort()
      return true
    }
    await assert.rejects(unpack(makePackage(t), new Tree(), isWanted, stop.signal), { name: 'AbortError' })
    await assert.rejects(unpack(makePackage(t), new Tree(), isWanted, stop.signal), { name: 'AbortError' })
  })
})

describe('mergedPath', () => {
  for (const [from, to] of [
    ['./', ''],
    ['./bin/busybox', 'usr/bin/busybox'],
    ['./usr/sbin/dropbear', 'usr/bin/dropbear'],
    ['/sbin/sfdisk', 'usr/bin/sfdisk'],
    ['./lib/modules/6.1/x.ko', 'usr/lib/modules/6.1/x.ko'],
    ['./libexec/x', 'libexec/x'],
  ] as const)
    it(`mergedPath: ${from} is ${to}`, () => assert.equal(mergedPath(from), to))
})
