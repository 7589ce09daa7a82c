// Kinds of addresses, and which ones the service may connect to.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AddressKind } from './address-kinds.ts'
import { addressKind, isAllowedAddress, mayLeadTo } from './address-kinds.ts'

const cases: Readonly<Record<AddressKind, readonly string[]>> = {
  public: ['1.1.1.1', '140.82.121.33', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:1.1.1.1', '64:ff9b::1.1.1.1'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', 'fd12::1', '::ffff:10.0.0.1'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:0:0:1', '64:ff9b::7f00:1'],
  special: [
    '0.0.0.0', '0.1.2.3', '169.254.169.254', '169.254.0.1', '224.0.0.1', '239.1.1.1', '255.255.255.255', '240.0.0.1',
    '::', 'fe80::1', 'fe80::1%eth0', 'ff02::1', 'fd00:ec2::254', '100.100.100.200', '::ffff:169.254.169.254',
    '2002:7f00:1::', '2001::1', '::127.0.0.1', 'localhost', '2130706433', '0x7f.1', '127.1', '', '1.2.3.256',
  ],
} // biome-ignore format: lists to read

describe('kind of an address', () => {
  for (const [kind, addresses] of Object.entries(cases))
    for (const address of addresses) it(`"${address}" is ${kind}`, () => assert.equal(addressKind(address), kind))

  it('the kind of an address decides whether connecting is allowed', () => {
    const strict = { allowPrivate: false, allowLoopback: false }
    assert.ok(isAllowedAddress('1.1.1.1', strict))
    assert.ok(!isAllowedAddress('10.0.0.1', strict))
    assert.ok(!isAllowedAddress('127.0.0.1', strict))
    assert.ok(isAllowedAddress('10.0.0.1', { ...strict, allowPrivate: true }))
    assert.ok(!isAllowedAddress('127.0.0.1', { ...strict, allowPrivate: true }))
    assert.ok(isAllowedAddress('127.0.0.1', { ...strict, allowLoopback: true }))
    assert.ok(!isAllowedAddress('169.254.169.254', { allowPrivate: true, allowLoopback: true }))
  })

  it('redirects may lead to public addresses and to the kinds of the redirecting server', () => {
    assert.ok(mayLeadTo('public', new Set(['private'])))
    assert.ok(mayLeadTo('private', new Set(['private'])))
    assert.ok(!mayLeadTo('private', new Set(['public'])))
    assert.ok(!mayLeadTo('loopback', new Set(['private'])))
    assert.ok(!mayLeadTo('special', new Set(['special'])))
  })
})
