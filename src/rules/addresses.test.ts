// Which addresses share a rate limit.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { networkOf } from './addresses.ts'

describe('network of an address', () => {
  const cases: Readonly<Record<string, string>> = {
    '192.0.2.7': '192.0.2.7',
    '::ffff:192.0.2.7': '192.0.2.7',
    '::FFFF:c000:207': '192.0.2.7',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:DB8:1:2::9': '2001:db8:1:2::/64',
    '2001:0db8:0001:0002:ffff:ffff:ffff:ffff': '2001:db8:1:2::/64',
    '2001:db8:1:3::9': '2001:db8:1:3::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    '::1': '0:0:0:0::/64',
    '64:ff9b::192.0.2.7': '64:ff9b:0:0::/64',
    office: 'office',
    '1::2::3': '1::2::3',
    '1:2:3': '1:2:3',
    '1:2:3:4:5:6:7:8:9': '1:2:3:4:5:6:7:8:9',
    '': '',
  }
  for (const [address, network] of Object.entries(cases))
    it(`the network of "${address}" is "${network}"`, () => assert.equal(networkOf(address), network))
})
