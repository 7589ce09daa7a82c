// The arguments of tart, as tables: the options of a run, and the settings of a machine. No process is started.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { machineDefaults } from '../../api/vms/vm-shape.ts'
import type { VmSpec } from '../driver.ts'
import { type AppleNetwork, launchOf } from './launch.ts'
import { cloneFile, createMachine, growDisk, readMachine, readTartConfig, renewMac, shapeMachine } from './machine.ts'
import { type Tart, vmAddress } from './tart.ts'

const gib = 2 ** 30
let root: string
before(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-apple-words-'))
  await fs.writeFile(path.join(root, 'disk.raw'), '')
  await fs.truncate(path.join(root, 'disk.raw'), gib)
  await fs.writeFile(path.join(root, 'nvram.bin'), 'nvram')
  for (const system of ['darwin', 'linux'])
    await fs.writeFile(
      path.join(root, `${system}.json`),
      JSON.stringify({ os: system, cpuCount: 4, memorySize: 8 * gib, ecid: 'id', hardwareModel: 'model', version: 1 }),
    )
})
after(() => fs.rm(root, { recursive: true }))

const specOf = (change: Partial<VmSpec> = {}, system: 'darwin' | 'linux' = 'darwin'): VmSpec => ({
  uid: 'a-uid',
  name: 'a',
  architecture: 'arm64',
  cpu: 4,
  memoryMiB: 8_192,
  image: {
    name: 'mac',
    digest: 'sha256:mac',
    disk: path.join(root, 'disk.raw'),
    format: 'raw',
    virtualSizeBytes: gib,
    boot: { kind: 'firmware' },
    machine: { config: path.join(root, `${system}.json`), nvram: path.join(root, 'nvram.bin') },
  },
  ip: '127.0.0.1',
  forwards: [],
  metadata: {},
  ...machineDefaults,
  ...change,
})

/** Records its arguments. */
function listening(answer: (words: readonly string[]) => string = () => '') {
  const told: string[] = []
  const command: Tart['command'] = async (_, words) => {
    told.push(words.join(' '))
    return { stdout: answer(words), stderr: '' } as Awaited<ReturnType<Tart['command']>>
  }
  return { told, tart: { program: 'tart', command, inHome: command } satisfies Tart }
}

async function made(vm: VmSpec): Promise<{ folder: string; name: string; told: readonly string[] }> {
  const folder = await fs.mkdtemp(path.join(root, 'vm-'))
  const { told, tart } = listening()
  await createMachine(folder, vm, tart)
  return { folder, name: (await readMachine(folder))?.name ?? '', told }
}

describe('run of tart', () => {
  const headless = ['--no-graphics', '--no-audio']
  const shared: AppleNetwork = { kind: 'shared' }
  const screen = { port: 5_999, width: 1_920, height: 1_080 }
  const cases: readonly [string, Partial<VmSpec>, 'darwin' | 'linux', AppleNetwork, readonly string[]][] = [
    ['macOS', {}, 'darwin', shared, [...headless, '--suspendable']],
    ['macOS with a screen', { screen }, 'darwin', shared, [...headless, '--vnc-experimental', '--suspendable']],
    ['Linux, which cannot be suspended', {}, 'linux', shared, headless],
    ['an ISO', { iso: '/srv/a.iso' }, 'linux', shared, [...headless, '--disk=/srv/a.iso:ro']],
    ['a sealed network', {}, 'linux', { kind: 'sealed' }, [...headless, '--net-softnet']],
    [
      'a sealed network with openings',
      {},
      'linux',
      { kind: 'sealed', allow: ['10.0.0.0/8', '192.168.1.0/24'] },
      [...headless, '--net-softnet', '--net-softnet-allow=10.0.0.0/8,192.168.1.0/24'],
    ],
    ['a bridge', {}, 'linux', { kind: 'bridged', card: 'en0' }, [...headless, '--net-bridged=en0']],
  ]
  for (const [what, change, system, network, words] of cases)
    it(`a run of tart has the options for ${what}`, async () => {
      const vm = specOf(change, system)
      const { folder, name } = await made(vm)
      const { options, ...run } = await launchOf(folder, vm, network)
      assert.deepEqual(options, [...words, `--dir=svc3:${folder}/guest:ro`])
      assert.equal(run.name, name)
    })
})

describe('machine of tart', () => {
  it("a machine of tart keeps the image's settings, with another address at each boot, and with a separate serial number if requested", async () => {
    const plain = await made(specOf())
    assert.deepEqual(plain.told, [])
    const seen = new Set<string | undefined>()
    for (let boot = 0; boot < 20; boot += 1) {
      await renewMac(plain.folder, plain)
      const { macAddress, ...rest } = await readTartConfig(plain.folder, plain)
      assert.match(macAddress ?? '', /^[0-9a-f][26ae](:[0-9a-f]{2}){5}$/, 'locally administered')
      assert.deepEqual(rest, JSON.parse(await fs.readFile(path.join(root, 'darwin.json'), 'utf8')))
      seen.add(macAddress)
    }
    assert.equal(seen.size, 20, 'another one for each boot')
    const other = await made(specOf({ systemSerial: 'NEW' }))
    assert.deepEqual(other.told, [`set ${other.name} --random-serial`])
    assert.deepEqual((await made(specOf({ systemSerial: 'NEW' }, 'linux'))).told, [], 'tart crashes with it')
  })

  it('a machine of tart gets cores, memory and screen if they differ, and its disk in whole gigabytes', async () => {
    const { folder, name } = await made(specOf())
    const { told, tart } = listening()
    const screen = { port: 5_999, width: 1_600, height: 900 }
    await shapeMachine(folder, specOf(), tart, AbortSignal.timeout(10_000))
    await shapeMachine(folder, specOf({ cpu: 6, screen }), tart, AbortSignal.timeout(10_000))
    await growDisk(folder, 3 * gib, tart)
    assert.deepEqual(told, [`set ${name} --cpu 6 --memory 8192 --display 1600x900px`, `set ${name} --disk-size 3`])
  })

  it('a machine of tart whose screen has the size in points gets it in pixels', async () => {
    const { folder, name } = await made(specOf())
    const screen = { port: 5_999, width: 1_600, height: 900 }
    const file = path.join(folder, 'tart', 'vms', name, 'config.json')
    for (const [unit, count] of [
      ['pt', 1],
      ['px', 0],
    ] as const) {
      // biome-ignore format: a table
      const config = JSON.parse(await fs.readFile(file, 'utf8'))
      await fs.writeFile(file, JSON.stringify({ ...config, display: { width: 1_600, height: 900, unit } }))
      const { told, tart } = listening()
      await shapeMachine(folder, specOf({ screen }), tart, AbortSignal.timeout(10_000))
      assert.equal(told.length, count, unit)
    }
  })

  it('a machine of tart is cloned on macOS with a copy where the file system cannot clone', async () => {
    const to = path.join(root, 'copy.raw')
    await cloneFile(path.join(root, 'nvram.bin'), to, undefined, 'darwin')
    assert.equal(await fs.readFile(to, 'utf8'), 'nvram')
    assert.equal((await fs.stat(to)).mode & 0o777, 0o600)
  })

  it('the disk of a machine of tart that grew says why macOS cannot use the space; Linux is not concerned', async () => {
    const mac = await made(specOf())
    assert.match((await growDisk(mac.folder, 2 * gib, listening().tart)) ?? '', /no GUID partition table/)
    assert.match((await growDisk(mac.folder, 2 * gib, listening().tart)) ?? '', /no GUID partition table/)
    const linux = await made(specOf({}, 'linux'))
    assert.equal(await growDisk(linux.folder, 2 * gib, listening().tart), undefined)
  })

  it('the address of a machine of tart is asked of all resolvers at once; the lease counts first, then ARP, then its agent', async () => {
    for (const resolver of ['dhcp', 'arp', 'agent']) {
      const { told, tart } = listening((words) => (words.includes(resolver) ? '192.168.64.7\n' : ''))
      assert.equal(await vmAddress(tart, root, 'a'), '192.168.64.7')
      assert.deepEqual(
        told,
        ['dhcp', 'arp', 'agent'].map((each) => `ip a --wait 0 --resolver ${each}`),
      )
    }
    const both = listening((words) => (words.includes('arp') ? '10.0.0.1' : words.includes('agent') ? '10.0.0.2' : ''))
    assert.equal(await vmAddress(both.tart, root, 'a'), '10.0.0.1')
    assert.equal(await vmAddress(listening().tart, root, 'a'), undefined)
  })
})
