// Valid metadata keys, and the facts that every guest can read.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { guestFacts, isMetadataKey, isReservedMetadataKey } from './guest-metadata.ts'

it('metadata keys are letters, digits, spaces inside and _ . -, at most 128 of them', () => {
  for (const key of ['a', 'my key', 'x.y_z-0', 'x'.repeat(128)]) assert.ok(isMetadataKey(key), key)
  for (const key of ['', ' a', 'a ', 'a/b', 'a\tb', 'ä', '__proto__', 'x'.repeat(129)])
    assert.ok(!isMetadataKey(key), key)
})

it('a guest reads its id, name, node, image, cores and memory under the six names of the original', () => {
  const facts = guestFacts({ uid: 'u1', name: 'demo', node: 'mac-1', image: 'sonoma', cpu: 4, memoryMiB: 7_680 })
  assert.deepEqual(facts, {
    orka_vm_id: 'u1',
    orka_vm_name: 'demo',
    orka_node_name: 'mac-1',
    orka_base_image: 'sonoma',
    orka_cpu: '4',
    orka_memory: '7.5G',
  })
  assert.ok(Object.keys(facts).every(isReservedMetadataKey))
})
