// macOS on amd64: its machine, field by field, and that the SMC key never shows.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { machineDefaults } from '../../api/vms/vm-shape.ts'
import type { VmSpec } from '../driver.ts'
import { type LaunchSettings, qemuArguments } from './arguments.ts'
import { isMacos, type MacosSettings, removeSmc, requireMacos, smcFile, smcKeyProblem, writeSmc } from './macos.ts'

const smcKey = 'stand-in for a key '.repeat(4).slice(0, 64)
const settings: MacosSettings = { openCore: { file: '/srv/a,b/OpenCore.img', format: 'raw' }, smcKey }
const vm: VmSpec = {
  uid: '6f1c2a7e-0000-4000-8000-000000000001',
  name: 'mac',
  architecture: 'amd64',
  cpu: 4,
  memoryMiB: 8_192,
  image: {
    name: 'sonoma',
    digest: 'sha256:1',
    disk: '/i/disk.raw',
    format: 'raw',
    virtualSizeBytes: 1,
    boot: { kind: 'firmware', firmware: 'uefi' },
    os: 'macos',
  },
  ip: '192.0.2.7',
  forwards: [],
  metadata: {},
  ...machineDefaults,
}
const around: LaunchSettings = {
  accelerator: 'kvm',
  network: 'user',
  runtime: '/tmp/svc3-vm-0',
  diskNode: { driver: 'qcow2', file: { driver: 'file', filename: '/vms/disk.qcow2' } },
  uefiCode: '/fw/code.fd',
  macos: settings,
}
const line = (change: Partial<VmSpec> = {}, where: Partial<LaunchSettings> = {}): string =>
  qemuArguments({ ...vm, ...change }, { ...around, ...where }).join(' ')

interface Row {
  readonly name: string
  readonly vm?: Partial<VmSpec>
  readonly around?: Partial<LaunchSettings>
  readonly has?: readonly RegExp[]
  readonly lacks?: readonly RegExp[]
}

const intel = 'vendor=GenuineIntel'
const screen = { port: 5_999, width: 2_560, height: 1_440 }
const table: readonly Row[] = [
  {
    name: 'q35 with UEFI and variables of its own',
    has: [/-machine q35,pflash0=firmware-code,pflash1=firmware-variables /, /"filename":"firmware-variables\.fd"/],
  },
  {
    name: 'a processor of a known make, under KVM',
    has: [new RegExp(`-accel kvm -cpu Haswell-noTSX,${intel},kvm=on,\\+invtsc,vmware-cpuid-freq=on -smp`)],
  },
  {
    name: "the host's own under HVF",
    around: { accelerator: 'hvf' },
    has: [new RegExp(`-accel hvf -cpu host,-pdpe1gb,${intel},\\+invtsc,vmware-cpuid-freq=on -smp`)],
  },
  {
    name: 'an emulated one without what emulation lacks',
    around: { accelerator: 'tcg' },
    has: [/-cpu Haswell-noTSX,vendor=GenuineIntel,-pcid/],
    lacks: [/invtsc/],
  },
  {
    name: "the operator's choice of a processor",
    around: { macos: { ...settings, cpu: 'Skylake-Client,vendor=GenuineIntel' } },
    has: [/-cpu Skylake-Client,vendor=GenuineIntel -smp/],
  },
  { name: 'one socket with all cores', has: [/-smp 4,sockets=1,cores=4,threads=1 -m 8192M/] },
  {
    name: 'the boot disk first in order, read-only, behind the disk among the devices',
    has: [
      /drive=disk,bootindex=1 .*"node-name":"boot-disk","driver":"raw","read-only":true/,
      /"filename":"\/srv\/a,b\/OpenCore\.img","read-only":true\}\} -device virtio-blk-pci,drive=boot-disk,bootindex=0/,
    ],
  },
  {
    name: 'a boot disk as qcow2, of which nothing else is opened',
    around: { macos: { openCore: { file: '/oc.qcow2', format: 'qcow2' } } },
    has: [/"node-name":"boot-disk","driver":"qcow2","read-only":true,.*"backing":null/],
  },
  { name: 'no boot disk where the guest has its own', around: { macos: { smcKey } }, lacks: [/boot-disk/] },
  { name: 'the SMC by a file', has: [/-readconfig \/tmp\/svc3-vm-0\/smc\.conf /], lacks: [/osk/, /stand-in/] },
  { name: 'no SMC without a key', around: { macos: {} }, lacks: [/readconfig/] },
  {
    name: 'USB input and the asked resolution, with memory for all of it',
    vm: { screen },
    has: [
      /-vnc 192\.0\.2\.7:99 -device VGA,edid=on,xres=2560,yres=1440,vgamem_mb=16 -device qemu-xhci -device usb-kbd -device usb-tablet/,
    ],
  },
  {
    name: 'more memory for a larger screen',
    vm: { screen: { ...screen, width: 5_120, height: 2_880 } },
    has: [/xres=5120,yres=2880,vgamem_mb=64/],
  },
  {
    name: 'a screen and keys also where nobody looks',
    has: [/-display none -device VGA,edid=on,xres=1920,yres=1080,vgamem_mb=16 -device qemu-xhci -device usb-kbd/],
    lacks: [/-vnc/],
  },
  { name: 'virtio for netBoost', has: [/virtio-net-pci,netdev=net,/, /virtio-net-pci,netdev=metadata,/] },
  { name: "VMware's network device without", vm: { netBoost: false }, has: [/vmxnet3,netdev=net,/] },
  {
    name: 'old devices for legacyIO, whatever netBoost says',
    vm: { legacyIO: true },
    has: [/ide-hd,bus=ide\.0,drive=disk/, /e1000-82545em,netdev=net,/],
    lacks: [/virtio-net/, /virtio-blk-pci,drive=disk/],
  },
  {
    name: 'the serial number, where macOS looks for it',
    vm: { systemSerial: 'C02XG0FDH7JY' },
    has: [/-smbios type=1,manufacturer=Apple Inc\.,serial=C02XG0FDH7JY -smbios type=2,.*serial=C02XG0FDH7JY/],
  },
  { name: 'an ISO behind the disk', vm: { iso: '/isos/sonoma.iso' }, has: [/ide-cd,bus=ide\.1,drive=iso,bootindex=2/] },
  {
    name: "Apple's installer image as a USB disk, which firmware boots",
    vm: { iso: '/isos/sonoma.img' },
    around: { isoIsDisk: true },
    has: [/qemu-xhci,id=installer -device usb-storage,bus=installer\.0,drive=iso,bootindex=2/, /"read-only":true/],
    lacks: [/ide-cd/],
  },
  { name: 'built-in network devices', has: [/-global ICH9-LPC\.acpi-pci-hotplug-with-bridge-support=off/] },
]

describe('macOS profile', () => {
  for (const { name, vm: change, around: where, has = [], lacks = [] } of table)
    it(`the macOS profile has ${name}`, () => {
      const words = line(change, where)
      for (const form of has) assert.match(words, form)
      for (const form of lacks) assert.doesNotMatch(words, form)
    })

  it('the macOS profile is only for macOS on amd64', () => {
    assert.equal(isMacos(vm), true)
    assert.equal(isMacos({ ...vm, architecture: 'arm64' }), false)
    for (const os of ['linux', 'other'] as const) assert.equal(isMacos({ ...vm, image: { ...vm.image, os } }), false)
    const { macos: _, ...plain } = around
    assert.doesNotMatch(qemuArguments(vm, plain).join(' '), /readconfig|usb-kbd|sockets=/)
  })
})

describe('SMC key', () => {
  let folder: string
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-smc-'))
  })
  after(() => fs.rm(folder, { recursive: true }))

  it('the SMC key is in a file that only this user can read, until QEMU has read it', async () => {
    await writeSmc(folder, smcKey)
    assert.equal((await fs.stat(smcFile(folder))).mode & 0o777, 0o600)
    assert.ok((await fs.readFile(smcFile(folder), 'utf8')).includes(`osk = "${smcKey}"\n`))
    await removeSmc(folder)
    await writeSmc(folder, undefined)
    assert.deepEqual(await fs.readdir(folder), [])
  })

  it('an invalid SMC key is refused without quoting it', async () => {
    for (const key of [smcKey.slice(1), `${smcKey}x`, `${smcKey.slice(1)}"`, `${smcKey.slice(1)}\n`]) {
      assert.match(smcKeyProblem(key) ?? '', /64 printable characters/)
      await assert.rejects(writeSmc(folder, key), (error: Error) => !error.message.includes('stand-in'))
    }
    assert.equal(smcKeyProblem(smcKey), undefined)
  })
})

describe('node without what macOS needs', () => {
  it('a node without the requirements of macOS says what its operator has to do', async () => {
    await assert.rejects(
      requireMacos(undefined),
      /cannot run macOS guests: set a boot disk and an SMC key.*agent\.json/,
    )
    const missing = { openCore: { file: '/nowhere/OpenCore.img', format: 'raw' } } as const
    await assert.rejects(requireMacos(missing), /\/nowhere\/OpenCore\.img cannot be read \(ENOENT\)/)
    assert.deepEqual(await requireMacos({ smcKey }), { smcKey })
  })
})
