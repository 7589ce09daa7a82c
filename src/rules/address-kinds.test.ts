// Which addresses are whose, in every spelling that reaches a socket.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { addressKind, mayLeadTo } from './address-kinds.ts'

const kinds: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.1', '127.255.255.254', '::1', '[::1]', '::ffff:127.0.0.1', '::ffff:7f00:1'],
  'link-local': ['169.254.169.254', '::ffff:169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'fd00:ec2::254', '100.100.100.200'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', 'fd12::1', '::ffff:10.1.2.3'],
  reserved: ['0.0.0.0', '::', '224.0.0.1', '255.255.255.255', '64:ff9b::7f00:1', '2002:7f00:1::', '::7f00:1', 'host', ''],
  public: ['93.184.215.14', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8'],
} // biome-ignore format: rows

for (const [kind, addresses] of Object.entries(kinds))
  it(`knows what is ${kind}`, () => {
    for (const address of addresses) assert.equal(addressKind(address), kind, address)
  })

it('lets a remote lead on to the outside, and to where it is itself', () => {
  assert.ok(mayLeadTo('public', new Set(['private'])))
  assert.ok(mayLeadTo('private', new Set(['private'])))
  assert.ok(!mayLeadTo('private', new Set(['public'])))
  assert.ok(!mayLeadTo('loopback', new Set(['private', 'link-local'])))
  assert.ok(!mayLeadTo('reserved', new Set(['reserved'])))
})
