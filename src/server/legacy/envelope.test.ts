// Envelopes of 2.4.x in parts.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { envelopeOf, partsOf } from './envelope.ts'

it('an envelope is sent item by item, and its parts are its JSON', () => {
  const answer = {
    message: 'Two "VMs"',
    virtual_machine_resources: [{ name: 'a' }, { name: 'b', ports: [{ host: 1 }] }],
    images: [],
    replicas: 2,
    missing: undefined,
  }
  const parts = [...partsOf(envelopeOf(answer))]
  assert.equal(parts.join(''), JSON.stringify(envelopeOf(answer)))
  assert.ok(parts.every((part) => !part.includes('"a"') || !part.includes('"b"')))
})
