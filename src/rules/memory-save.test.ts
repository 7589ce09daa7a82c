// Which VMs lose their memory in a save or commit, and in which words that is said.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { whyNoMemory } from '../drivers/qemu/captures/memory.ts'
import { type CapturedMachine, memorySaveOf, memorySaveText } from './memory-save.ts'

const linux = {
  driver: 'qemu',
  driverVersion: 'QEMU 7.2.9 (kvm, sealed network)',
  os: 'Linux 6.1',
  architecture: 'amd64',
} as const
const mac = {
  ...linux,
  driverVersion: 'QEMU 9.1 (hvf, unsealed network)',
  os: 'Darwin 24.1',
  architecture: 'arm64',
} as const
const vm: CapturedMachine = { architecture: 'amd64', os: 'linux', hasIso: false, boot: 'bios', node: linux }

const cases: readonly (readonly [title: string, machine: Partial<CapturedMachine>, saved: boolean | undefined, reason?: RegExp])[] = [
  ['Linux on QEMU that boots by BIOS', {}, true],
  ['Linux on QEMU that boots from a kernel, also of the other architecture', { architecture: 'arm64', boot: 'kernel' }, true],
  ['an unknown guest that boots by BIOS', { os: undefined }, true],
  ['UEFI', { boot: 'uefi' }, false, /UEFI/],
  ['macOS on QEMU, whatever is known of its firmware', { os: 'macos', boot: undefined }, false, /macOS boots by UEFI/],
  ['macOS on Apple silicon', { architecture: 'arm64', os: 'macos', node: { ...mac, driver: 'apple' } }, false, /Mac only/],
  ['Linux on Apple silicon', { architecture: 'arm64', boot: undefined, node: { ...mac, driver: 'apple' } }, false, /Mac only/],
  ['HVF', { architecture: 'arm64', boot: 'kernel', node: mac }, false, /does not let QEMU/],
  ['HVF of an agent that does not name it', { architecture: 'arm64', boot: 'kernel', node: { ...mac, driverVersion: 'x' } }, false, /QEMU/],
  ['an emulated guest on a Mac', { node: mac }, true],
  ['an ISO', { hasIso: true }, false, /ISO/],
  ['a simulated VM', { node: { ...linux, driver: 'simulated' } }, false, /simulated/],
  ['firmware that the service does not know', { boot: undefined }, undefined, /firmware/],
  ['a driver that the service does not know', { node: { ...linux, driver: 'other' } }, undefined, /driver/],
  ['a node without a report', { node: undefined }, undefined, /node/],
] // biome-ignore format: a table

for (const [title, machine, saved, reason] of cases)
  it(`whether memory is saved: ${title}: ${saved ?? 'it depends'}`, () => {
    const memory = memorySaveOf({ ...vm, ...machine })
    assert.equal(memory.saved, saved)
    if (reason) assert.match(memory.reason ?? '', reason)
    else assert.equal(memory.reason, undefined)
  })

it('the QEMU driver refuses memory for the same reasons as were announced', () => {
  const shape = { machine: 'q35', accelerator: 'kvm' }
  assert.equal(whyNoMemory(shape), memorySaveOf(vm).reason)
  assert.equal(whyNoMemory(shape, { iso: 'x' }), memorySaveOf({ ...vm, hasIso: true }).reason)
  assert.equal(whyNoMemory({ ...shape, machine: 'q35,pflash0=x' }), memorySaveOf({ ...vm, boot: 'uefi' }).reason)
  assert.ok(whyNoMemory({ ...shape, accelerator: 'hvf' }))
})

it('people read that memory will not or may not be saved, and nothing if it will', () => {
  assert.equal(memorySaveText('demo', undefined), undefined)
  assert.equal(memorySaveText('demo', { saved: true }), undefined)
  assert.equal(
    memorySaveText('demo', { saved: false, reason: 'an ISO is in its drive' }),
    'The memory of VM demo will not be saved: an ISO is in its drive. VMs deployed from the image boot from its disk',
  )
  assert.equal(
    memorySaveText('demo', { reason: 'that depends on x' }),
    'The memory of VM demo may not be saved: that depends on x. Without memory, VMs deployed from the image boot from its disk',
  )
})
