// Addresses of stores on etcd, and why others are refused.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { isFault } from '../store.ts'
import { parseEtcdAddress } from './address.ts'

const parse = (place: string, notices: string[] = []) => parseEtcdAddress(place, (text) => notices.push(text))
const urls = (place: string): string[] => parse(place).endpoints.map(({ url }) => url)

test('an etcd address names hosts, ports and the prefix', () => {
  assert.deepEqual(urls('//a:1,b,[::1]:3'), ['http://a:1', 'http://b:2379', 'http://[::1]:3'])
  assert.deepEqual(urls('//a:443,b:80?tls=true'), ['https://a:443', 'https://b:80'])
  assert.equal(parse('//a').prefix, 'svc3')
  assert.equal(parse('//a/').prefix, 'svc3')
  assert.equal(parse('//a/team/one/').prefix, 'team/one')
  assert.equal(parse('//a?keep=5000').keepRevisions, 5000)
  assert.equal(parse('//a?keep=all').keepRevisions, 0)
})

test('certificates and passwords for etcd are read from their files, each time anew', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-address-'))
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const [ca, password] = [path.join(folder, 'ca.pem'), path.join(folder, 'password')]
  fs.writeFileSync(ca, 'one')
  fs.writeFileSync(password, 'first\n')
  const options = parse(`//a?ca=${ca}&server-name=etcd.test&user=svc3&password-file=${password}`)
  const [endpoint] = options.endpoints
  assert.equal(endpoint?.url, 'https://a:2379')
  assert.deepEqual(await endpoint?.tls?.(), { ca: 'one', servername: 'etcd.test' })
  assert.deepEqual(await options.credentials?.(), { user: 'svc3', password: 'first' })
  fs.writeFileSync(ca, 'two')
  fs.writeFileSync(password, 'second')
  assert.deepEqual(await endpoint?.tls?.(), { ca: 'two', servername: 'etcd.test' })
  assert.deepEqual(await options.credentials?.(), { user: 'svc3', password: 'second' })
  fs.rmSync(password)
  await assert.rejects(async () => options.credentials?.(), /Cannot read a file.*password/)
})

test('a password for etcd without TLS is warned of, but not on this machine', () => {
  const notices: string[] = []
  parse('//127.0.0.1,localhost,[::1]?user=a&password-file=b', notices)
  assert.deepEqual(notices, [])
  parse('//127.0.0.1,10.0.0.1?user=a&password-file=b', notices)
  assert.match(notices.join(), /unencrypted/)
})

test('what means nothing in an etcd address is refused, without repeating a password', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['', /(no|not a) host/],
    ['//', /(no|not a) host/],
    ['a:1', /(no|not a) host/],
    ['//a,,b', /(no|not a) host/],
    ['//a b', /(no|not a) host/],
    ['//svc3:hunter2@a', /password-file=/],
    ['//a/pre fix', /prefix/],
    ['//a?cert=x', /cert and key/],
    ['//a?key=x', /cert and key/],
    ['//a?user=x', /user and password-file/],
    ['//a?password=hunter2', /unknown option "password"/],
    ['//a?tls=maybe', /tls/],
    ['//a?tls=false&ca=x', /require TLS/],
    ['//a?keep=5', /keep/],
    ['//a?ca=x&ca=y', /one value/],
    ['//a?ca=', /one value/],
  ]
  for (const [place, words] of cases)
    assert.throws(
      () => parse(place),
      (error: Error) => {
        assert.match(error.message, words, place)
        assert.match(error.message, /etcd:\/\/HOST:PORT/)
        assert.doesNotMatch(error.message, /hunter2/)
        return isFault(error, 'Unavailable')
      },
      place,
    )
})
