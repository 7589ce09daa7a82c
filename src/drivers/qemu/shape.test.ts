// What two VMs must have in common for one to resume from the other's memory.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { machineDefaults } from '../../api/vms/vm-shape.ts'
import type { VmSpec } from '../driver.ts'
import { qemuArguments } from './arguments.ts'
import { whyNoMemory } from './captures/memory.ts'
import { difference, machineShape } from './shape.ts'

describe('shape of a QEMU VM', () => {
  let root: string
  before(async () => {
    root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-shape-'))
    for (const name of ['kernel', 'other']) await fs.writeFile(path.join(root, name), name)
  })
  after(() => fs.rm(root, { recursive: true }))

  const vmOf = (change: Partial<VmSpec> = {}): VmSpec => ({
    uid: crypto.randomUUID(),
    name: 'vm',
    architecture: 'amd64',
    cpu: 2,
    memoryMiB: 512,
    image: {
      name: 'i',
      digest: 'sha256:i',
      disk: '/i.raw',
      format: 'raw',
      virtualSizeBytes: 1,
      boot: { kind: 'kernel', kernel: path.join(root, 'kernel'), commandLine: 'quiet' },
    },
    ip: '127.0.0.1',
    forwards: [],
    metadata: {},
    ...machineDefaults,
    ...change,
  })
  const shape = (vm: VmSpec, network: 'sealed' | 'user' = 'user', diskBytes = 1) => {
    const around = { accelerator: 'tcg', network, runtime: '/tmp/r', diskNode: {} } as const
    return machineShape({ vm, command: qemuArguments(vm, around), accelerator: 'tcg', network, diskBytes })
  }

  it('the shape of a QEMU VM has nothing that differs between VMs of the same kind', async () => {
    const one = await shape(vmOf({ systemSerial: 'A1' }))
    const forwards = [{ protocol: 'tcp', hostPort: 1_234, guestPort: 22 }] as const
    assert.deepEqual(await shape(vmOf({ name: 'other', ip: '127.0.0.2', forwards, metadata: { a: 'b' } })), one)
    assert.equal(difference(one, await shape(vmOf())), undefined)
    assert.match(String(one.machine), /^pc-q35-\d/)
    assert.match(String(one.version), /^\d+\.\d+/)
    for (const value of Object.values(one)) assert.ok(String(value).length < 4_096)
  })

  it('the shape of a QEMU VM differs with every field, and the difference is named', async () => {
    const one = await shape(vmOf())
    const boot = { kind: 'kernel', kernel: path.join(root, 'other'), commandLine: 'quiet' } as const
    const others: readonly [RegExp, Promise<Record<string, string | number>>][] = [
      [/number of cores was 2 and is 3 here/, shape(vmOf({ cpu: 3 }))],
      [/memory in MiB was 512 and is 768 here/, shape(vmOf({ memoryMiB: 768 }))],
      [
        /architecture was amd64 and is arm64 here/,
        shape(vmOf({ architecture: 'arm64' })).then((s) => ({ ...s, version: one.version ?? '' })),
      ],
      [/list of devices/, shape(vmOf({ netBoost: false }))],
      [/list of devices/, shape(vmOf({ screen: { port: 5_901, width: 800, height: 600 } }))],
      [/kernel or firmware/, shape(vmOf({ image: { ...vmOf().image, boot } }))],
      [/kind of network was user and is sealed here/, shape(vmOf(), 'sealed')],
      [/size of the disk in bytes was 1 and is 2 here/, shape(vmOf(), 'user', 2)],
      [/version of QEMU was .* and is 0 here/, Promise.resolve({ ...one, version: '0' })],
      [/"odd" was unknown and is 1 here/, Promise.resolve({ ...one, odd: 1 })],
    ]
    for (const [words, other] of others) assert.match(difference(one, await other) ?? '', words)
  })

  it('the shape of a QEMU VM decides whether its memory can be saved', async () => {
    const one = await shape(vmOf())
    assert.equal(whyNoMemory(one, vmOf()), undefined)
    assert.match(whyNoMemory(one, vmOf({ iso: '/a.iso' })) ?? '', /ISO/)
    assert.match(whyNoMemory({ ...one, machine: 'q35,pflash0=x' }, vmOf()) ?? '', /UEFI/)
    assert.match(whyNoMemory(undefined, vmOf()) ?? '', /earlier version/)
  })
})
