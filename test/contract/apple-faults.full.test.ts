// What users are told when tart or Apple's framework fails, on the stand-in for tart: one test for each of its faults.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { AppleDriver } from '../../src/drivers/apple/driver.ts'
import { readMachine } from '../../src/drivers/apple/machine.ts'
import { tartEnvironment, tartFolder } from '../../src/drivers/apple/tart.ts'
import type { VmSpec } from '../../src/drivers/driver.ts'
import { ExecError, exec } from '../../src/platform/exec.ts'
import type { Faults } from '../support/stand-ins/tart/faults.ts'
import { installStandIn, standInOptions } from '../support/stand-ins/tart/install.ts'
import { eventually } from '../support/tools/eventually.ts'
import { freePort } from '../support/tools/free-port.ts'
import { blankMac, tartsOf } from './driver-apple.ts'
import { specify } from './driver-vm.ts'

let root: string
let program: string
const cleanUp: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-apple-faults-'))
  program = await installStandIn(path.join(root, 'bin'))
})
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
  await fs.rm(root, { recursive: true })
})

const signal = () => AbortSignal.timeout(120_000)
const home = () => path.join(root, 'home')

async function arrange(faults: Faults = {}, change: Partial<VmSpec> = {}, options = {}) {
  const driver = new AppleDriver({ ...standInOptions(program), home: home(), ...options })
  const vm = await specify({ architecture: 'arm64', image: blankMac }, root, change)
  const folder = path.join(root, `vm-${vm.uid}`)
  const handle = await driver.create(vm, folder)
  const setFaults = (next: Faults) => fs.writeFile(path.join(folder, 'tart', 'stand-in.faults'), JSON.stringify(next))
  await setFaults(faults)
  cleanUp.push(async () => {
    await setFaults({})
    await driver.destroy(handle)
    await driver.close()
  })
  const start = () => driver.start(handle, vm, signal())
  const place = tartFolder(folder, (await readMachine(folder))?.name ?? '')
  return { driver, vm, handle, folder, place, setFaults, start }
}

/** Connects to the forwarded port and says whether the connection stays. */
async function isForwarded(vm: VmSpec): Promise<boolean> {
  const socket = net.connect(vm.forwards[0]?.hostPort ?? 0, vm.ip)
  socket.on('error', () => undefined)
  const closed = new Promise<boolean>((resolve) => socket.on('close', () => resolve(false)))
  const stays = new Promise<boolean>((resolve) => setTimeout(resolve, 5_000, true))
  const isOpen = await Promise.race([closed, stays])
  socket.destroy()
  return isOpen
}

/** Every user may open it, unlike port 22. */
const guestPort = async () => [{ protocol: 'tcp', hostPort: await freePort(), guestPort: 8_080 }] as const

describe('faults of tart (on its stand-in)', { timeout: 600_000 }, () => {
  const unlock =
    /log in as the agent's user at the screen of this Mac .* or run 'security unlock-keychain login\.keychain' as/
  const told: Readonly<Record<string, readonly [Faults['start'], RegExp]>> = {
    'a locked keychain (-9)': ['keychain-9', unlock],
    'a start that fails without a reason (1)': ['keychain-1', unlock],
    'a start that fails late, after tart calls the VM running': [{ fault: 'keychain-1', late: 2_000 }, unlock],
    'Softnet that is not installed': ['softnet', /brew install openai\/tools\/softnet', then 'sudo chown root /],
    'a bridge that this Mac lacks': ['bridge', /choose one of 'networksetup -listallhardwareports' as apple\.bridge/],
    'a macOS that is too old': ['host', /needs a newer macOS .* 'sudo softwareupdate --install --all --restart'/],
    'NVRAM that stays locked': ['storage', /another process holds the VM's NVRAM: find it with 'lsof /],
  }
  for (const [what, [start, text]] of Object.entries(told))
    it(`faults of tart are told with what mends them: ${what}`, async () => {
      const vm = await arrange({ ...(start && { start }) })
      await assert.rejects(vm.start(), (error: Error) => {
        assert.match(error.message, text)
        assert.match(error.message, /\(tart: /, 'and what tart printed')
        return true
      })
      assert.equal((await vm.driver.inspect(vm.handle)).state, 'stopped')
      await vm.setFaults({})
      await vm.start()
      assert.equal((await vm.driver.inspect(vm.handle)).state, 'running')
    })

  for (const fault of ['storage', 'limit'] as const)
    it(`faults of tart are not told if the framework needs a moment after the end of a VM: ${fault}`, async () => {
      const vm = await arrange({ start: { fault, times: 2 } })
      assert.deepEqual(await vm.start(), {})
      assert.deepEqual(await vm.driver.inspect(vm.handle), { state: 'running' })
      assert.equal((await vm.driver.probe()).noMacos, undefined)
    })

  it('faults of tart: a limit of VMs that none explains asks for a restart of the Mac, and closes its seats until then', async () => {
    const vm = await arrange({ start: 'limit' })
    await assert.rejects(vm.start(), /macOS has lost count of them. Drain the node, then restart this Mac/)
    const probe = await vm.driver.probe()
    assert.deepEqual([probe.ok, probe.maxMacosVms], [true, 0])
    assert.match(probe.noMacos?.arm64 ?? '', /restart this Mac \('sudo shutdown -r now'\)/)
    await fs.writeFile(path.join(home(), 'svc3-macos', 'lost-count'), 'an earlier boot')
    const { maxMacosVms, noMacos } = await vm.driver.probe()
    assert.deepEqual([maxMacosVms, noMacos], [2, undefined])
  })

  it('faults of tart: a limit of VMs names the broken VM that keeps tart from listing those of people', async () => {
    await fs.mkdir(path.join(home(), 'vms', 'broken'), { recursive: true })
    await fs.writeFile(path.join(home(), 'vms', 'broken', 'config.json'), '{')
    const vm = await arrange({ start: 'limit' })
    await assert.rejects(vm.start(), /'tart list' fails: repair or delete the broken VM in .*vms/)
    assert.equal((await vm.driver.probe()).noMacos, undefined, 'nothing is known about this Mac')
  })

  it('faults of tart: a VM that could not be suspended for a save is started again, and its user is told', async () => {
    const vm = await arrange({ suspend: 'The virtual machine cannot be saved.' })
    await vm.start()
    const options = { id: 'one', withMemory: false }
    const capture = await vm.driver.capturing.capture(vm.handle, vm.vm, options, signal())
    const note =
      /could not be suspended for the save: it ended as if its power was cut.*started again \(.*cannot be saved/
    assert.match(capture.note ?? '', note)
    const observed = await vm.driver.inspect(vm.handle)
    assert.equal(observed.state, 'running')
    assert.match((observed.state === 'running' && observed.note) || '', note)
    await assert.rejects(
      vm.driver.suspension.suspend(vm.handle),
      /could not suspend it, and it has ended: .*cannot be saved/,
    )
    const failed = await vm.driver.inspect(vm.handle)
    assert.match(failed.state === 'failed' ? failed.problem : '', /cannot be saved/)
  })

  it('faults of tart: a VM whose memory does not fit on the disk is not suspended, and keeps running', async () => {
    const vm = await arrange()
    await vm.start()
    const file = path.join(vm.place, 'config.json')
    const config = JSON.parse(await fs.readFile(file, 'utf8'))
    await fs.writeFile(file, JSON.stringify({ ...config, memorySize: 2 ** 60 }))
    const before = await tartsOf(vm.handle)
    const text = /GiB free, and suspending the VM needs 1073741824 GiB for its memory. The VM keeps running; free space/
    const options = { id: 'one', withMemory: false }
    await assert.rejects(vm.driver.capturing.capture(vm.handle, vm.vm, options, signal()), text)
    await assert.rejects(vm.driver.suspension.suspend(vm.handle), text)
    assert.deepEqual(await tartsOf(vm.handle), before)
    assert.deepEqual(await vm.driver.inspect(vm.handle), { state: 'running' })
    await fs.writeFile(file, JSON.stringify(config))
  })

  it('faults of tart: a suspended state that does not fit is told, also after a save', async () => {
    const vm = await arrange()
    await vm.start()
    await vm.driver.suspension.suspend(vm.handle)
    await vm.setFaults({ restore: true })
    const note = /booted from the disk because the suspended state could not be resumed: .*failed to restore/
    assert.match((await vm.start()).note ?? '', note)
    await vm.driver.capturing.capture(vm.handle, vm.vm, { id: 'one', withMemory: false }, signal())
    const observed = await vm.driver.inspect(vm.handle)
    assert.match((observed.state === 'running' && observed.note) || '', note)
  })

  it('faults of tart: a suspended VM stays suspended while its host has to be mended', async () => {
    const vm = await arrange()
    await vm.start()
    await vm.driver.suspension.suspend(vm.handle)
    const { macAddress } = JSON.parse(await fs.readFile(path.join(vm.place, 'config.json'), 'utf8'))
    await vm.setFaults({ start: 'keychain-9' })
    await assert.rejects(vm.start(), unlock)
    assert.equal((await vm.driver.inspect(vm.handle)).state, 'suspended')
    await vm.setFaults({})
    assert.deepEqual(await vm.start(), {})
    const address = async () => JSON.parse(await fs.readFile(path.join(vm.place, 'config.json'), 'utf8')).macAddress
    assert.equal(await address(), macAddress, 'it has the address that its guest knows')
    await vm.driver.stop(vm.handle, { graceSeconds: 0 })
    await vm.start()
    assert.notEqual(await address(), macAddress, 'another one after a cold boot')
  })

  it('faults of tart: a guest that boots for a while is reached when the right resolver finds its address', async () => {
    for (const resolver of ['dhcp', 'arp', 'agent'] as const) {
      const vm = await arrange({ bootSeconds: 3_600, resolver }, { forwards: await guestPort() })
      await vm.start()
      assert.equal(await isForwarded(vm.vm), false, 'it boots')
      await vm.setFaults({ resolver })
      await eventually(async () => assert.equal(await isForwarded(vm.vm), true), 60_000)
      await vm.driver.stop(vm.handle, { graceSeconds: 0 })
    }
  })

  it('faults of tart: a lease that macOS gave twice leads to no other guest', async () => {
    const vm = await arrange({ arp: '06:00:00:00:00:02' }, { forwards: await guestPort() })
    await vm.start()
    for (let i = 0; i < 2; i += 1) assert.equal(await isForwarded(vm.vm), false)
    await vm.driver.stop(vm.handle, { graceSeconds: 0 })
    await vm.setFaults({})
    await vm.start()
    await eventually(async () => assert.equal(await isForwarded(vm.vm), true), 60_000)
  })

  it('faults of tart: an agent in the guest that hangs delays a save and a stop, and fails neither', async () => {
    const vm = await arrange({ execHangs: true })
    await vm.start()
    const options = { id: 'one', withMemory: false }
    assert.equal((await vm.driver.capturing.capture(vm.handle, vm.vm, options, signal())).note, undefined)
    await vm.driver.stop(vm.handle, { graceSeconds: 1 })
    assert.equal((await vm.driver.inspect(vm.handle)).state, 'stopped')
  })

  it('faults of tart: a VM is up only when the address of its screen is known', async () => {
    const screen = { port: await freePort(), width: 800, height: 600 }
    const vm = await arrange(
      { vncLate: 2_000 },
      { screen },
      { screen: undefined, isScreenRuleLoaded: async () => true },
    )
    await vm.start()
    assert.match(JSON.parse(await fs.readFile(path.join(vm.folder, 'run.json'), 'utf8')).vnc, /^vnc:/)
  })

  it('faults of tart: a VM has no screen and says why, while the rule that closes screens to the network is not loaded', async () => {
    const screen = { port: await freePort(), width: 800, height: 600 }
    const vm = await arrange({}, { screen }, { screen: undefined, isScreenRuleLoaded: async () => false })
    assert.match((await vm.start()).note ?? '', /it has no screen: .*set apple\.screen to "open" in agent\.json/)
    const { options } = JSON.parse(await fs.readFile(path.join(vm.folder, 'run.json'), 'utf8'))
    assert.ok(!options.includes('--vnc-experimental'))
    assert.equal(await vm.driver.ports.holds(vm.handle, screen.port, vm.vm.ip), false)
  })

  it('faults of tart: a VM that a person runs already is told', async () => {
    const vm = await arrange()
    const name = path.basename(vm.place)
    const byHand = spawn(program, ['run', name, '--no-graphics'], { env: tartEnvironment(vm.folder), stdio: 'ignore' })
    cleanUp.push(async () => byHand.kill('SIGINT'))
    await eventually(() => fs.access(path.join(vm.place, 'control.sock')), 30_000)
    await assert.rejects(vm.start(), /the agent did not start runs this VM: .*is already running!/s)
  })

  it('faults of tart: each command has its own options, and exit codes of its errors', async () => {
    const vm = await arrange()
    const name = path.basename(vm.place)
    const refused = async (...words: string[]) =>
      exec(program, words, { env: tartEnvironment(vm.folder) }).then(
        () => 0,
        (error: unknown) => error instanceof ExecError && error.exitCode,
      )
    assert.equal(await refused('stop', name, '--nested'), 64)
    assert.equal(await refused('get', name, '--cpu', '1'), 64)
    assert.equal(await refused('run', name, '--memory-balloon', 'true'), 64, 'this is of a later version')
    assert.equal(await refused('list', '--source', 'elsewhere'), 64)
    assert.equal(await refused('suspend', name), 2)
    const { stdout } = await exec(program, ['list', '--source', 'oci', '--format', 'json'], {
      env: tartEnvironment(vm.folder),
    })
    assert.deepEqual(JSON.parse(stdout), [])
  })
})
