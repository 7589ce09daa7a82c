// The order in which a node tries the servers of its cluster, and the addresses that it does not learn.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createAddresses } from './addresses.ts'

const urls = ['https://a.example', 'https://b.example', 'https://c.example']

it('an agent tries all configured and learned addresses in turn', () => {
  const addresses = createAddresses(['https://a.example'], 'n1')
  assert.equal(addresses.after('https://a.example'), 'https://a.example')
  assert.equal(addresses.learn('https://a.example', urls), true)
  assert.equal(addresses.learn('https://a.example', urls.toReversed()), false)
  const seen = new Set<string>()
  for (let url = 'https://a.example'; !seen.has(url); url = addresses.after(url)) seen.add(url)
  assert.deepEqual([...seen].toSorted(), urls)
  // Learned addresses of removed servers are forgotten; configured addresses stay.
  addresses.learn('https://b.example', ['https://b.example'])
  assert.deepEqual(addresses.all, ['https://a.example', 'https://b.example'])
})

it('nodes of a server that failed are spread over the other servers', () => {
  const next = new Map<string, number>()
  for (let i = 0; i < 200; i++) {
    const url = createAddresses(urls, `node-${i}`).after('https://a.example')
    next.set(url, (next.get(url) ?? 0) + 1)
  }
  assert.deepEqual([...next.keys()].toSorted(), urls.slice(1))
  for (const count of next.values()) assert.ok(count > 50, JSON.stringify([...next]))
})

it('an agent learns no address with http instead of https, and no loopback address of another machine', () => {
  const addresses = createAddresses(['https://a.example'], 'n1')
  addresses.learn('https://a.example', ['http://b.example', 'https://127.0.0.1:8443', 'nonsense', 'ftp://x'])
  assert.deepEqual(addresses.all, ['https://a.example'])
  const local = createAddresses(['http://127.0.0.1:1'], 'n1')
  local.learn('http://127.0.0.1:1', ['http://127.0.0.1:2', 'https://b.example'])
  assert.deepEqual(local.all, ['http://127.0.0.1:1', 'http://127.0.0.1:2', 'https://b.example'])
})
