// Ownership: who may delete what (docs/spec.md R14), and namespaces that refuse VMs.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { mayDelete, takesVms } from './ownership.ts'

it('developers delete their own, administrators everything, others nothing', () => {
  assert.ok(mayDelete('dev', 'ana@example.com', 'ana@example.com'))
  assert.ok(!mayDelete('dev', 'ana@example.com', 'bo@example.com'))
  assert.ok(mayDelete('admin', 'root@example.com', 'bo@example.com'))
  assert.ok(!mayDelete('none', 'ana@example.com', 'ana@example.com'))
})

it('a namespace for custom pods takes no VMs', () => {
  assert.ok(takesVms({ customPods: false }))
  assert.ok(!takesVms({ customPods: true }))
})
