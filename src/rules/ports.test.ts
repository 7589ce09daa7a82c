// Parsing of reserved ports, and the first free port of a kind.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { freePort, parseReservedPorts } from './ports.ts'

describe('reserved ports', () => {
  it('reserved ports are pairs, optionally of udp', () => {
    const { ports, causes } = parseReservedPorts('8080:80, 5353:53/udp,5353:53')
    assert.deepEqual(causes, [])
    assert.deepEqual(ports, [
      { nodePort: 8080, vmPort: 80, protocol: 'tcp' },
      { nodePort: 5353, vmPort: 53, protocol: 'udp' },
      { nodePort: 5353, vmPort: 53, protocol: 'tcp' },
    ])
  })

  it('each invalid reserved port is named', () => {
    for (const [text, problem] of [
      ['80', /invalid port/],
      ['22:22', /cannot be reserved/],
      ['6443:1', /cannot be reserved/],
      ['443:1', /cannot be reserved/],
      ['70000:1', /not a port/],
      ['8080:0', /not a port/],
      ['8080:1,8080:2', /listed twice/],
      ['8080:1/sctp', /invalid port/],
    ] as const) {
      const { causes } = parseReservedPorts(text)
      assert.equal(causes.length, 1, text)
      assert.match(causes[0]?.message ?? '', problem)
    }
    assert.equal(parseReservedPorts('a:b,c:d').causes.length, 2)
    assert.equal(parseReservedPorts('').ports.length, 0)
  })
})

describe('free port', () => {
  it('the search for a free port begins at its kind’s first, and skips ports of the host', () => {
    assert.equal(
      freePort('ssh', () => false),
      8_822,
    )
    assert.equal(
      freePort('vnc', () => false),
      5_999,
    )
    assert.equal(
      freePort('screenshare', (port) => port < 6_443),
      6_444,
    )
    assert.equal(
      freePort('ssh', () => true),
      undefined,
    )
  })
})
