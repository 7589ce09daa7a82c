// QEMU's arguments for a VM: the effect of each field, refusals, and the absence of secrets.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { machineDefaults } from '../../api/vms/vm-shape.ts'
import type { VmSpec } from '../driver.ts'
import { type LaunchSettings, qemuArguments } from './arguments.ts'

const vm: VmSpec = {
  uid: '6f1c2a7e-0000-4000-8000-000000000001',
  name: 'demo',
  architecture: 'amd64',
  cpu: 3,
  memoryMiB: 4_915,
  image: {
    name: 'i',
    digest: 'sha256:1',
    disk: '/i/disk.raw',
    format: 'raw',
    virtualSizeBytes: 1,
    boot: { kind: 'firmware' },
  },
  ip: '192.0.2.7',
  forwards: [
    { protocol: 'tcp', hostPort: 8822, guestPort: 22 },
    { protocol: 'udp', hostPort: 9000, guestPort: 53 },
  ],
  metadata: { key: 'top-secret' },
  userdata: 'dG9wLXNlY3JldA==',
  ...machineDefaults,
}
const around: LaunchSettings = {
  accelerator: 'tcg',
  network: 'user',
  runtime: '/tmp/svc3-vm-0',
  diskNode: { driver: 'qcow2', file: { driver: 'file', filename: '/vms/a,b/disk.qcow2' } },
}
const line = (change: Partial<VmSpec> = {}, where: Partial<LaunchSettings> = {}): string =>
  qemuArguments({ ...vm, ...change }, { ...around, ...where }).join(' ')

describe('qemuArguments', () => {
  it('qemuArguments has the requested cores and memory, and no other devices', () => {
    assert.match(line(), /^qemu-system-x86_64 -nodefaults .*-smp 3 -m 4915M/)
    assert.match(
      line({ architecture: 'arm64' }),
      /^qemu-system-aarch64 .*-machine virt -accel tcg,thread=multi -cpu cortex-a57/,
    )
    assert.match(line({ architecture: 'arm64', cpu: 12 }), /-machine virt,gic-version=3 /)
    assert.match(line({}, { accelerator: 'kvm' }), /-accel kvm -cpu host/)
  })

  it('qemuArguments has no secrets', () => {
    for (const network of ['user', 'sealed'] as const)
      assert.doesNotMatch(line({}, { network }), /top-secret|dG9wLXNlY3JldA/)
  })

  it('qemuArguments binds the address of the VM and no other', () => {
    const words = line({ screen: { port: 5_999, width: 1_920, height: 1_080 } })
    assert.match(words, /hostfwd=tcp:192\.0\.2\.7:8822-:22,hostfwd=udp:192\.0\.2\.7:9000-:53/)
    assert.match(words, /-vnc 192\.0\.2\.7:99 -device VGA,edid=on,xres=1920,yres=1080/)
    assert.doesNotMatch(words, /0\.0\.0\.0/)
    assert.match(line(), /-display none/)
    assert.doesNotMatch(line(), /VGA|-vnc/)
  })

  it('qemuArguments has a separate network for the metadata', () => {
    assert.match(
      line(),
      /user,id=metadata,ipv6=off,restrict=on,net=169\.254\.169\.0\/24,.*guestfwd=tcp:169\.254\.169\.254:80-cmd:/,
    )
  })

  it('qemuArguments has legacy devices for amd64 if requested', () => {
    assert.match(line({ legacyIO: true, netBoost: false }), /ide-hd,.*e1000,netdev=net/)
    assert.doesNotMatch(line({ legacyIO: true, netBoost: false }), /virtio-(blk|net)/)
    assert.match(line({ architecture: 'arm64', legacyIO: true, netBoost: false }), /virtio-blk-pci.*virtio-net-pci/)
  })

  it('qemuArguments has the port of the guest agent last', () => {
    const words = line({ screen: { port: 5_999, width: 800, height: 600 } })
    assert.match(words, /-chardev socket,id=agent,path=\/tmp\/svc3-vm-0\/agent,server=on,wait=off /)
    assert.match(words, /-device virtserialport,chardev=agent,name=org\.qemu\.guest_agent\.0$/)
  })

  it('qemuArguments attaches an ISO read-only, after the disk', () => {
    assert.match(
      line({ iso: '/isos/a,b.iso' }),
      /"read-only":true,"file":\{"driver":"file","filename":"\/isos\/a,b.iso".*bootindex=2/,
    )
  })

  it('qemuArguments boots a kernel, or firmware with variables', () => {
    const boot = { kind: 'kernel', kernel: '/k', initrd: '/r', commandLine: 'root=/dev/vda1 quiet' } as const
    assert.ok(qemuArguments({ ...vm, image: { ...vm.image, boot } }, around).includes('root=/dev/vda1 quiet'))
    assert.match(line({}, { uefiCode: '/fw/code.fd' }), /-machine q35,pflash0=firmware-code,pflash1=firmware-variables/)
  })

  it('qemuArguments has the same MAC addresses at every start, different from those of other VMs', () => {
    const macs = (words: string) => [...words.matchAll(/mac=(52:54:00(?::[0-9a-f]{2}){3})/g)].map(([, mac]) => mac)
    assert.equal(new Set(macs(line())).size, 2)
    assert.deepEqual(macs(line()), macs(line({ name: 'renamed' })))
    assert.notDeepEqual(macs(line()), macs(line({ uid: '6f1c2a7e-0000-4000-8000-000000000002' })))
  })

  it('qemuArguments refuses screen ports and serial numbers that QEMU does not support', () => {
    assert.throws(() => line({ screen: { port: 5_899, width: 1, height: 1 } }), /5900 and above/)
    assert.throws(() => line({ systemSerial: 'a,file=/etc/passwd' }), /serial number/)
    assert.match(line({ systemSerial: 'C02-X.1' }), /-smbios type=1,serial=C02-X\.1/)
    assert.match(line({ systemSerial: 'C02+X/1' }), /-smbios type=1,serial=C02\+X\/1/)
  })
})
