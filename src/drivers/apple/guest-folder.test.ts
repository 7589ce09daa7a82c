// What a guest of tart finds in its shared folder, and its first-boot script: run once on each disk, and never with secrets in
// arguments or warnings.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { machineDefaults } from '../../api/vms/vm-shape.ts'
import { ExecError, exec } from '../../platform/exec.ts'
import type { VmSpec } from '../driver.ts'
import { FirstBoot } from './first-boot.ts'
import { hostOptions, removeSecrets, scriptFile, writeGuestFolder } from './guest-folder.ts'
import type { Tart } from './tart.ts'

let root: string
before(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-guest-folder-'))
})
after(() => fs.rm(root, { recursive: true }))

const newFolder = (): Promise<string> => fs.mkdtemp(path.join(root, 'vm-'))
const script = '#!/bin/sh\necho canary-in-script\n'
const specOf = (change: Partial<VmSpec> = {}): VmSpec => ({
  uid: 'a-uid',
  name: 'a',
  architecture: 'arm64',
  cpu: 4,
  memoryMiB: 8_192,
  image: {
    name: 'mac',
    digest: 'sha256:mac',
    disk: '/d',
    format: 'raw',
    virtualSizeBytes: 1,
    boot: { kind: 'firmware' },
  },
  ip: '127.0.0.1',
  forwards: [],
  metadata: {},
  ...machineDefaults,
  userdata: Buffer.from(script).toString('base64'),
  ...change,
})

describe('shared folder of a guest', () => {
  it('the shared folder of a guest has metadata and the first-boot script as files that only the agent can read', async () => {
    const folder = await newFolder()
    const metadata = { token: 'ü "canary" $(id)\nline', 'my key': 'spaced', orka_vm_name: 'mine' }
    const option = await writeGuestFolder(folder, specOf({ metadata, facts: { orka_vm_name: 'a' } }))
    assert.equal(option, `--dir=svc3:${folder}/guest:ro`)
    const values = { token: metadata.token, 'my key': 'spaced', orka_vm_name: 'a' }
    for (const [key, value] of Object.entries(values))
      assert.equal(await fs.readFile(path.join(folder, 'guest/metadata', key), 'utf8'), value)
    assert.equal(await fs.readFile(scriptFile(folder), 'utf8'), script)
    for (const name of ['', 'metadata', 'metadata/token', 'userdata'])
      assert.equal((await fs.stat(path.join(folder, 'guest', name))).mode & 0o77, 0, name)
  })

  it('the shared folder of a guest stays the same folder, without what was removed since', async () => {
    const folder = await newFolder()
    await writeGuestFolder(folder, specOf({ metadata: { old: '1' } }))
    const { ino } = await fs.stat(path.join(folder, 'guest'))
    const { userdata: _, ...plain } = specOf({ metadata: { new: '1' } })
    await writeGuestFolder(folder, plain)
    assert.equal((await fs.stat(path.join(folder, 'guest'))).ino, ino)
    assert.deepEqual(await fs.readdir(path.join(folder, 'guest/metadata')), ['new'])
    await assert.rejects(fs.access(scriptFile(folder)))
    await removeSecrets(folder)
    assert.deepEqual(await fs.readdir(path.join(folder, 'guest')), [])
  })

  it('the shared folder of a guest cannot have keys that are no names of files, or that a Mac takes for the same', async () => {
    for (const metadata of [{ '.': '1' }, { '..': '1' }, { 'a/b': '1' }, { '': '1' }, { Key: '1', key: '2' }])
      await assert.rejects(writeGuestFolder(await newFolder(), specOf({ metadata })), /cannot be a file/)
  })
})

describe('folders of the host in a guest', () => {
  it('folders of the host in a guest are below those that the operator allows, also through links', async () => {
    const host = await fs.realpath(await newFolder())
    for (const name of ['cache/deep', 'cache-2', 'private']) await fs.mkdir(path.join(host, name), { recursive: true })
    await fs.symlink(path.join(host, 'private'), path.join(host, 'cache/out'))
    await fs.symlink(path.join(host, 'cache'), path.join(host, 'link'))
    const allowed = [path.join(host, 'link'), path.join(host, 'missing')]
    const options = (...directories: string[]) => hostOptions(specOf({ directories }), allowed)
    assert.deepEqual(await options(`a:${host}/cache:ro`, `b:${host}/link/deep`), [
      `--dir=a:${host}/cache:ro`,
      `--dir=b:${host}/cache/deep`,
    ])
    for (const folder of ['cache-2', 'private', 'cache/out', 'cache/../private', 'missing', ''])
      await assert.rejects(options(`a:${host}/${folder}`), /guests may not have folder .* apple\.directories/, folder)
    await assert.rejects(hostOptions(specOf({ directories: [`a:${host}/cache`] }), []), /apple\.directories/)
  })

  it('folders of the host in a guest come with nested virtualization and Rosetta only where requested', async () => {
    assert.deepEqual(await hostOptions(specOf(), ['/']), [])
    assert.deepEqual(await hostOptions(specOf({ nested: true, rosetta: 'rosetta' }), []), [
      '--nested',
      '--rosetta=rosetta',
    ])
  })
})

/** With its log in the folder of this test. */
async function runHere(script: string): Promise<string> {
  const input = script.replaceAll(/\/(var\/log|tmp)\//g, `${root}/`)
  return (await exec('sh', ['-s'], { input })).stdout
}

interface Guest {
  readonly told: string[]
  readonly inputs: string[]
  readonly tart: Tart
}

/** A guest whose script ends as `run` says; by default this host runs it. */
function guest(run: (script: string) => Promise<string> = runHere): Guest {
  const told: string[] = []
  const inputs: string[] = []
  const command: Tart['command'] = async (_, words, options) => {
    told.push(words.join(' '))
    if (!words.includes('-i')) return { stdout: '', stderr: '' }
    inputs.push(options?.input ?? '')
    return { stdout: await run(options?.input ?? ''), stderr: '' }
  }
  return { told, inputs, tart: { program: 'tart', command, inHome: command } }
}

/** Begins, and waits until the record says that it is done. */
async function boot(folder: string, { tart }: Guest, disk = 'disk-1'): Promise<FirstBoot> {
  const first = new FirstBoot(tart, folder, () => undefined)
  first.begin(disk)
  first.begin(disk)
  for (let done = false; !done; await new Promise((resolve) => setTimeout(resolve, 5))) {
    const text = await fs.readFile(path.join(folder, 'first-boot.json'), 'utf8').catch(() => '{}')
    done = JSON.parse(text).isDone === true && JSON.parse(text).disk === disk
  }
  await new Promise((resolve) => setImmediate(resolve))
  return first
}

async function prepared(text = script): Promise<string> {
  const folder = await newFolder()
  await writeGuestFolder(folder, specOf({ userdata: Buffer.from(text).toString('base64') }))
  return folder
}

describe('first-boot script', () => {
  it('a first-boot script runs once on a disk, through standard input, also when the agent starts again', async () => {
    const folder = await prepared()
    const mac = guest()
    assert.equal((await boot(folder, mac)).note, undefined)
    await boot(folder, mac)
    assert.equal(mac.inputs.length, 1)
    assert.equal(await fs.readFile(path.join(root, 'svc3-first-boot.log'), 'utf8'), 'canary-in-script\n')
    assert.deepEqual(
      (await fs.readdir(root)).filter((name) => /^svc3\./.test(name)),
      [],
      'the script was removed',
    )
    assert.ok(!mac.told.join().includes('canary'))
    await boot(folder, mac, 'disk-2')
    assert.equal(mac.inputs.length, 2, 'another disk boots for the first time again')
  })

  it('a first-boot script that fails is named with its exit code and not repeated; what it prints stays secret', async () => {
    const folder = await prepared('echo canary-in-output; exit 3')
    const mac = guest()
    for (let boots = 0; boots < 2; boots++) {
      const first = await boot(folder, mac)
      while (first.note === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
      assert.match(
        first.note,
        /^The first-boot script failed with exit code 3; its output is in \/var\/log\/svc3-first/,
      )
    }
    assert.equal(mac.inputs.length, 1)
    assert.ok(!(await fs.readFile(path.join(folder, 'first-boot.json'), 'utf8')).includes('canary'))
  })

  it('a first-boot script that was interrupted is not repeated, and its VM says so', async () => {
    const folder = await prepared()
    const started = Promise.withResolvers<void>()
    const stuck = guest(() => {
      started.resolve()
      return new Promise(() => undefined)
    })
    const killed = new FirstBoot(stuck.tart, folder, () => undefined)
    killed.begin('disk-1')
    await started.promise
    killed.end()
    const changed = Promise.withResolvers<void>()
    const mac = guest()
    const next = new FirstBoot(mac.tart, folder, changed.resolve)
    next.begin('disk-1')
    await changed.promise
    assert.match(next.note ?? '', /unknown, and it is not repeated/)
    assert.deepEqual(mac.told, [])
  })

  it('a first-boot script that cannot run in the guest is tried again at the next boot', async () => {
    const folder = await prepared()
    const refused: Tart['command'] = async () => {
      throw new ExecError('tart', 'failed with exit code 1', 1, 'sudo: a password is required')
    }
    const changed = Promise.withResolvers<void>()
    const without = new FirstBoot({ program: 'tart', command: refused, inHome: refused }, folder, changed.resolve)
    without.begin('disk-1')
    await changed.promise
    assert.match(
      without.note ?? '',
      /^The first-boot script did not run: the user of tart's guest agent may not use sudo/,
    )
    const mac = guest()
    await boot(folder, mac)
    assert.equal(mac.inputs.length, 1)
  })

  it('a first-boot script whose connection is lost, as when it turns the guest off, has an unknown outcome', async () => {
    const folder = await prepared()
    const first = await boot(
      folder,
      guest(() => Promise.reject(new ExecError('tart', 'failed', 1, 'canary'))),
    )
    while (first.note === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.match(first.note, /unknown/)
  })

  it('a first-boot script makes files that others can read, as an administrator does', async () => {
    const made = path.join(root, 'made')
    await boot(await prepared(`echo public > "$(dirname "$0")/../made"`), guest())
    assert.equal((await fs.stat(made)).mode & 0o777, 0o644)
    assert.equal((await fs.stat(path.join(root, 'svc3-first-boot.log'))).mode & 0o777, 0o600)
  })

  it('a first-boot script runs by the interpreter that its first line names', async () => {
    const folder = await prepared('#!/bin/cat\nshown as it is\n')
    assert.equal((await boot(folder, guest())).note, undefined)
    assert.match(await fs.readFile(path.join(root, 'svc3-first-boot.log'), 'utf8'), /^#!\/bin\/cat\nshown as it is/)
  })
})
