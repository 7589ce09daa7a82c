// Which VMs take a slot, and which one of several.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { machineDefaults, type VmShape } from '../../api/vms/vm-shape.ts'
import { chooseSlot, slotKey, type WarmRequest, warmKeyOf } from './warm-match.ts'

const shape: VmShape = {
  ...machineDefaults,
  image: 'tiny',
  architecture: 'amd64',
  cpu: 2,
  memoryMiB: 1_024,
  tagRequired: false,
  scheduler: 'default',
  vncConsole: true,
  display: { width: 1_920, height: 1_080, dpi: 96 },
}
const pin = { imageContent: 'sha256:a' }
const vm: WarmRequest = { shape, ...pin, reservedPorts: [] }

describe('match of a request and a slot', () => {
  it('a request for the shape of a slot has the key of the slot', () => {
    assert.equal(warmKeyOf(vm), slotKey(shape, pin))
    assert.equal(warmKeyOf({ ...vm, shape: { ...shape, scheduler: 'most-allocated', node: 'a' } }), slotKey(shape, pin))
  })

  const others: readonly (readonly [string, Partial<WarmRequest>])[] = [
    ['another image', { shape: { ...shape, image: 'other' } }],
    ['another content of the image', { imageContent: 'sha256:b' }],
    ['another number of cores', { shape: { ...shape, cpu: 3 } }],
    ['other memory', { shape: { ...shape, memoryMiB: 0 } }],
    ['no screen', { shape: { ...shape, vncConsole: false } }],
    ['another screen', { shape: { ...shape, display: { ...shape.display, dpi: 72 } } }],
    ['another network device', { shape: { ...shape, netBoost: false } }],
    ['another disk device', { shape: { ...shape, legacyIO: true } }],
  ]
  for (const [what, change] of others)
    it(`a request for ${what} has another key`, () => {
      const key = warmKeyOf({ ...vm, ...change })
      assert.ok(key !== undefined && key !== slotKey(shape, pin))
    })

  const never: readonly (readonly [string, Partial<WarmRequest>])[] = [
    ['that is to boot cold', { isCold: true }],
    ['that opts out or has a script for the first boot', { noWarm: true }],
    ['with a reserved port', { reservedPorts: [{}] }],
    ['for an image of a registry', { imageReference: 'ghcr.io/a/b@sha256:c' }],
    ['with an ISO', { shape: { ...shape, iso: 'a.iso' } }],
    ['with a serial number', { shape: { ...shape, systemSerial: 'random' } }],
    ['with a shared folder', { shape: { ...shape, directories: ['a:/b'] } }],
    ['with a GPU', { shape: { ...shape, gpuPassthrough: true } }],
    ['whose image is not pinned', { imageContent: undefined }],
  ]
  for (const [what, change] of never)
    it(`a request ${what} takes no slot`, () => assert.equal(warmKeyOf({ ...vm, ...change }), undefined))
})

describe('choice of a slot', () => {
  const slot = (name: string, createdAt: string, tags: readonly string[] = []) => ({ node: { name, tags }, createdAt })
  const slots = [slot('a', '2'), slot('b', '1'), slot('c', '3', ['ios'])]

  it('the oldest slot is taken', () => assert.equal(chooseSlot(shape, slots)?.node.name, 'b'))
  it('slots with a preferred tag come first, and a required tag excludes others', () => {
    assert.equal(chooseSlot({ ...shape, tag: 'ios' }, slots)?.node.name, 'c')
    assert.equal(chooseSlot({ ...shape, tag: 'mac', tagRequired: true }, slots), undefined)
  })
  it('a requested node excludes others', () => {
    assert.equal(chooseSlot({ ...shape, node: 'a' }, slots)?.node.name, 'a')
    assert.equal(chooseSlot({ ...shape, node: 'z' }, slots), undefined)
  })
})
