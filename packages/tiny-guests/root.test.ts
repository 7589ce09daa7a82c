// The root file system of each image, from stand-ins for the packages: it has everything in its row of the table, and
// missing files are reported.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type GuestName, guests } from './images.ts'
import type { Kernel } from './kernel.ts'
import { rootTree } from './root.ts'
import { Tree } from './tree.ts'

const kernel: Kernel = { release: '1', shipped: Buffer.alloc(0), image: Buffer.alloc(0), modules: new Map() }
const names = Object.keys(guests) as GuestName[]

/** A file for each path, and one in each folder; busybox has a table of commands. */
function packagesOf(name: GuestName): Tree {
  const tree = new Tree()
  for (const path of guests[name].paths) tree.file(path.endsWith('/') ? `${path}inside` : path, path)
  tree.file('usr/bin/busybox', '[\0[[\0cat\0sh\0\0')
  for (const triplet of ['x86_64-linux-gnu', 'aarch64-linux-gnu'])
    tree.file(`usr/lib/${triplet}/security/pam_permit.so`, '')
  return tree.file('usr/share/locale/de/LC_MESSAGES/git.mo', 'not asked for')
}

const text = (tree: Tree, path: string): string => {
  const entry = tree.get(path)
  return entry?.kind === 'file' ? Buffer.from(entry.data).toString() : ''
}

describe('rootTree', () => {
  for (const name of names)
    it(`rootTree of ${name} has what its row asks for and no more, its name, and busybox as /bin/sh`, () => {
      const tree = rootTree(name, packagesOf(name), kernel)
      const { paths, shell } = guests[name]
      assert.deepEqual(
        paths.filter((path) => !tree.has(path.endsWith('/') ? `${path}inside` : path)),
        [],
      )
      assert.equal(tree.has('usr/share/locale/de/LC_MESSAGES/git.mo'), false)
      assert.equal(text(tree, 'etc/hostname'), `${name}\n`)
      assert.deepEqual(tree.get('usr/bin/sh'), { kind: 'link', target: 'busybox', mode: 0o777 })
      assert.match(text(tree, 'etc/passwd'), new RegExp(`^admin:x:1000:1000:admin:/home/admin:${shell}$`, 'm'))
      // Dropbear refuses users whose shell is not listed.
      assert.ok(text(tree, 'etc/shells').split('\n').includes(shell))
      assert.ok(tree.has(`usr${shell}`), 'the shell is there')
    })

  it('rootTree puts all certificates into one file, in always the same order', () => {
    const packages = packagesOf('small-amd64')
    packages
      .file('usr/share/ca-certificates/mozilla/B.crt', 'second')
      .file('usr/share/ca-certificates/mozilla/A.crt', 'first\n')
    const tree = rootTree('small-amd64', packages, kernel)
    assert.equal(text(tree, 'etc/ssl/certs/ca-certificates.crt'), 'first\nsecond\n')
    assert.equal(rootTree('tiny-amd64', packagesOf('tiny-amd64'), kernel).has('etc/ssl'), false)
  })

  it('rootTree says which file or folder the packages do not have', () => {
    const packages = new Tree()
    for (const [path, entry] of packagesOf('small-arm64').sorted())
      if (!path.startsWith('usr/lib/git-core')) packages.add(path, entry)
    assert.throws(
      () => rootTree('small-arm64', packages, kernel),
      /the downloaded packages have no \/usr\/lib\/git-core\//,
    )
  })
})

describe('images', () => {
  it('there are two images for each architecture, and small has all that tiny has', () => {
    assert.deepEqual(names, ['tiny-amd64', 'tiny-arm64', 'small-amd64', 'small-arm64'])
    const [tiny, small] = [guests['tiny-amd64'], guests['small-amd64']]
    assert.deepEqual(
      tiny.packages.filter((name) => !small.packages.includes(name)),
      [],
    )
    assert.deepEqual(
      tiny.paths.filter((path) => !small.paths.includes(path)),
      [],
    )
  })

  it('jobs find bash, scp, sftp, rsync, curl and git in the small images', () => {
    const programs = ['bash', 'scp', 'sftp', 'ssh', 'rsync', 'curl', 'git'].map((program) => `usr/bin/${program}`)
    for (const name of ['small-amd64', 'small-arm64'] as const)
      assert.deepEqual(
        programs.filter((path) => !guests[name].paths.includes(path)),
        [],
      )
  })
})
