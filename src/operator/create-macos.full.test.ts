// svc3 image create-macos on the stand-in for tart, with Debian's registry.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, describe, it, mock } from 'node:test'
import { endService } from '../../test/support/processes/leftovers.ts'
import { type RegistryProcess, startRegistry } from '../../test/support/processes/registry.ts'
import { run } from '../../test/support/rigs/cli-host.ts'
import type { Faults } from '../../test/support/stand-ins/tart/faults.ts'
import { installStandIn, writeMachine } from '../../test/support/stand-ins/tart/install.ts'
import { eventually } from '../../test/support/tools/eventually.ts'
import { openContentFolder } from '../images/content/store.ts'
import { restoreDisk } from '../images/pack/restore.ts'
import { openRegistry } from '../oci/registry/registry.ts'
import { packTart } from '../oci/tart/read.ts'
import { childEnvironment } from '../platform/exec.ts'
import { startTimeOf } from '../platform/processes.ts'

const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-create-macos-'))
const inside = (...names: string[]) => path.join(folder, ...names)
const home = inside('home')
process.env.TART_HOME = home
Object.assign(childEnvironment, { PATH: `${inside('bin')}:${childEnvironment.PATH}` })

const disk = randomBytes(3 * 2 ** 20)
let open: RegistryProcess
let closed: RegistryProcess

const create = (words: readonly string[], interruption?: AbortSignal) =>
  run(['image', 'create-macos', ...words], { ...(interruption && { interruption }) })
const image = (registry = open) => `${registry.host}/team/macos:27`
const usual = () => [image(), '--ipsw', inside('mac.ipsw'), '--allow-insecure']
const fault = (faults: Faults) => fs.writeFile(path.join(home, 'stand-in.faults'), JSON.stringify(faults))
/** The disk of the pushed image, as svc3 imports it. */
async function pulled(name: string): Promise<Buffer> {
  const policy = { allowPrivate: true, allowLoopback: true }
  const registry = openRegistry({ server: open.server, allowInsecure: true, policy })
  const source = registry.repository('team/macos')
  const store = await openContentFolder(inside(`store-${name}`))
  const packed = await packTart(source, await source.resolve('27'), store)
  assert.equal(packed.architecture, 'arm64')
  await restoreDisk(packed, store, inside(name))
  registry.close()
  return fs.readFile(inside(name))
}
/** VMs, temporary files and locks in tart's home. */
async function leftovers(): Promise<readonly string[]> {
  const found: string[] = []
  for await (const file of fs.glob(['vms/*', 'tmp/*', '*.lock'], { cwd: home })) found.push(file)
  return found
}

describe('svc3 image create-macos', () => {
  before(async () => {
    await installStandIn(inside('bin'))
    const { config } = await writeMachine(folder, { kernel: Buffer.from('k'), commandLine: '' })
    await fs.writeFile(inside('disk'), disk)
    await fs.writeFile(
      inside('mac.ipsw'),
      JSON.stringify({ ipsw: 'stand-in', disk: inside('disk'), nvram: inside('nvram.bin'), config }),
    )
    open = await startRegistry({ folder: inside('open') })
    closed = await startRegistry({ folder: inside('closed'), hasPassword: true })
  })
  beforeEach(async () => {
    await fs.rm(home, { recursive: true, force: true })
    await fs.mkdir(home)
    await fs.copyFile(inside('mac.ipsw'), path.join(home, 'stand-in.ipsw'))
    mock.restoreAll()
    mock.method(fs, 'statfs', async () => ({ bavail: 100e9, bsize: 1 }))
  })
  after(async () => {
    await open.kill()
    await closed.kill()
    await fs.rm(folder, { recursive: true, force: true })
  })

  it('svc3 image create-macos pushes an image that svc3 pulls, shows the progress, and leaves nothing', async () => {
    const { exitCode, stdout, stderr } = await create([image(), '--ipsw', 'latest', '--allow-insecure', '--disk', '50'])
    assert.equal(exitCode, 0, stderr)
    assert.equal(stdout, `Image ${image()} pushed.\n`)
    assert.match(stderr, /tart is a stand-in here/)
    assert.match(stderr, /Fetching UniversalMac_Restore\.ipsw[\s\S]*Installing OS\.\.\.[\s\S]*pushing disk/)
    assert.match(stderr, /To set macOS up: svc3 vm deploy setup -i \S+\/team\/macos:27, svc3 vm vnc setup/)
    assert.deepEqual(await leftovers(), [])
    assert.ok((await pulled('plain')).equals(disk))
  })

  const refusals: Readonly<Record<string, [words: () => readonly string[], faults: Faults, said: RegExp]>> = {
    'an IPSW that is none': [
      () => [image(), '--ipsw', inside('disk')],
      {},
      /not installed: .*restore image failed to load[\s\S]*Use a complete IPSW of a macOS that this Mac supports, or --ipsw latest, then/,
    ],
    'an IPSW that is missing': [
      () => [image(), '--ipsw', 'none.ipsw'],
      {},
      /none\.ipsw is not a file[\s\S]*Use --ipsw latest/,
    ],
    'a Mac that is too old': [
      usual,
      { install: 'update' },
      /A software update is required[\s\S]*Update macOS, and install the current Xcode and open it once, then try again/,
    ],
    'a disk that fills up': [
      usual,
      { install: 'space' },
      /out of disk space[\s\S]*Free disk space on this Mac, then try/,
    ],
    'an installation that fails': [
      usual,
      { install: 'failed' },
      /Installation failed\.[\s\S]*Solve this, then try again/,
    ],
  }
  for (const [what, [words, faults, said]] of Object.entries(refusals))
    it(`svc3 image create-macos says what to do about ${what}, and leaves nothing`, async () => {
      await fault(faults)
      const { exitCode, stderr } = await create(words())
      assert.ok(exitCode === 1 || exitCode === 2, String(exitCode))
      assert.match(stderr, said)
      assert.deepEqual(await leftovers(), [])
    })

  it('svc3 image create-macos keeps what it installed when the registry refuses it, and says how to push it', async () => {
    const { exitCode, stderr } = await create([image(closed), ...usual().slice(1)])
    assert.equal(exitCode, 1)
    const [, rest = ''] = /Run tart login 127\.0\.0\.1:\d+, then run (tart push .*)/.exec(stderr) ?? []
    const [, name] = /^tart push (svc3-macos-\w+) \S+\/team\/macos:27 --insecure && tart delete \1$/.exec(rest) ?? []
    assert.deepEqual(await leftovers(), [`vms/${name}`], stderr)
    assert.equal((await create(usual())).exitCode, 0)
    assert.deepEqual(await leftovers(), [])
  })

  it('svc3 image create-macos refuses a disk that is too full, a user on old Macs, and other computers', async () => {
    mock.method(fs, 'statfs', async () => ({ bavail: 40e9, bsize: 1 }))
    const full = await create([image(), '--ipsw', 'latest'])
    assert.match(full.stderr, /has 37\.3 GiB free; 46\.6 GiB needed/)
    assert.equal((await create(usual())).exitCode, 0, 'a file needs no download')
    await fs.writeFile(inside('bin', 'sw_vers'), '#!/bin/sh\necho 26.4\n', { mode: 0o755 })
    const old = await create([...usual(), '--unattended'])
    assert.match(old.stderr, /--unattended needs macOS 27 on this Mac/)
    await fs.writeFile(inside('bin', 'sw_vers'), '#!/bin/sh\necho 27.1\n', { mode: 0o755 })
    await fs.rename(inside('bin', 'tart'), inside('bin', 'tart-aside'))
    await fs.writeFile(inside('bin', 'tart'), '#!/bin/sh\necho 2.35.0\n', { mode: 0o755 })
    const unable = await create([...usual(), '--unattended'])
    assert.match(unable.stderr, /tart 2\.35\.0 cannot create users/)
    await fs.rm(inside('bin', 'tart'))
    const elsewhere = await create(usual())
    assert.match(elsewhere.stderr, /This is not a Mac with Apple silicon/)
    await fs.rename(inside('bin', 'tart-aside'), inside('bin', 'tart'))
    assert.equal((await create(['macos', '--ipsw', 'latest'])).exitCode, 2)
    assert.deepEqual(await leftovers(), [])
  })

  it('svc3 image create-macos leaves nothing after Ctrl-C, and runs once at a time', async () => {
    await fault({ install: 'hangs' })
    const interruption = new AbortController()
    const running = create(usual(), interruption.signal)
    await eventually(async () => assert.ok((await leftovers()).some((file) => file.startsWith('tmp/'))), 20_000)
    const second = await create(usual())
    assert.match(second.stderr, /Another image is being created on this Mac\n.*stop process \d+/)
    interruption.abort()
    assert.equal((await running).exitCode, 130)
    assert.deepEqual(await leftovers(), [])
  })

  it('svc3 image create-macos removes what a killed run left, with its processes', async () => {
    await fault({ install: 'hangs' })
    const rig = path.resolve(import.meta.dirname, '../../test/support/rigs/cli-host.ts')
    const words = JSON.stringify(['image', 'create-macos', ...usual()])
    const script = `const { run } = await import('${rig}'); await run(${words})`
    const env = { ...process.env, PATH: childEnvironment.PATH ?? '' }
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { env, stdio: 'ignore' })
    endService(child)
    let tart = ''
    await eventually(async () => {
      tart = (await leftovers()).find((file) => file.startsWith('tmp/')) ?? ''
      assert.notEqual(tart, '')
    }, 30_000)
    child.kill('SIGKILL')
    await once(child, 'exit')
    assert.ok(await startTimeOf(Number(path.basename(tart))), 'tart goes on without its parent')
    await fault({})
    assert.equal((await create(usual())).exitCode, 0)
    assert.deepEqual(await leftovers(), [])
    assert.equal(await startTimeOf(Number(path.basename(tart))), undefined)
  })

  it('svc3 image create-macos creates the user before the push, though the installer holds the VM at first', async () => {
    await fault({ start: { fault: 'storage', times: 1 } })
    const { exitCode, stderr } = await create([...usual(), '--unattended'])
    assert.equal(exitCode, 0, stderr)
    assert.match(stderr, /Creating the user[\s\S]*pushing disk[\s\S]*Deploy a VM: svc3 vm deploy demo -i/)
    assert.match((await pulled('user')).toString('latin1'), /^provisioned for admin\n/)
    assert.deepEqual(await leftovers(), [])
  })

  it('svc3 image create-macos keeps what it installed when the first boot fails', async () => {
    await fault({ start: 'keychain-9' })
    const { exitCode, stderr } = await create([...usual(), '--unattended'])
    assert.equal(exitCode, 1)
    assert.match(
      stderr,
      /but was not pushed: .*host key[\s\S]*unlock-keychain login\.keychain, then run tart push svc3-macos-/,
    )
    assert.equal((await leftovers()).length, 1)
  })
})
