// --debug shows requests and responses without secrets: the tests plant a canary wherever a secret may be.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { type FakeService, recordOf, startFakeService } from '../../../test/support/stand-ins/api.ts'
import { changes, serve, vmOf } from '../../../test/support/stand-ins/fleet.ts'
import { allOperations } from '../../api/index.ts'
import { shownBody, shownHeader, shownUrl, shownValue } from './redact.ts'

const canary = 'canary-7f3a9c'
let service: FakeService
before(async () => {
  service = await startFakeService(`token-${canary}`)
})
after(() => service[Symbol.asyncDispose]())
beforeEach(() =>
  serve(service, {
    'POST vms': () => vmOf({ name: 'demo' }),
    'WATCH vms': changes(),
    'POST vms/demo/resize': () => vmOf({ name: 'demo' }),
    'POST secrets/registrycredentials/add': () => recordOf({ server: 'https://ghcr.io', username: 'ci' }),
    'POST serviceaccounts/jenkins/token': () => ({ token: `made-${canary}`, expiresAt: null }),
    'POST jointokens': () => ({ token: `join-${canary}`, expiresAt: '2026-11-15T12:00:00Z' }),
  }),
)

const svc3 = (words: readonly string[], input = '') =>
  run([...words, '--debug'], { env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }, input })

describe('--debug', () => {
  it('--debug shows requests and answers, with their headers', async () => {
    const { exitCode, stderr } = await svc3(['vm', 'deploy', 'demo', '-i', 'sonoma', '-o', 'json'])
    assert.equal(exitCode, 0)
    assert.match(
      stderr,
      /> POST http:\/\/127\.0\.0\.1:\d+\/api\/v1\/namespaces\/svc-default\/vms\?onDisconnect=delete\n/,
    )
    assert.match(stderr, /> {3}authorization: \[redacted\]\n/)
    assert.match(stderr, /> {3}idempotency-key: \S+\n/)
    assert.match(stderr, /> {3}\{"image":"sonoma","timeout":10,"name":"demo"\}\n/)
    assert.match(stderr, /< 201 after \d+ ms\n/)
    assert.match(stderr, /< {3}\{"namespace":"svc-default",/)
    for (const line of stderr.split('\n').slice(0, -1)) assert.match(line, /^svc3: \d+ [<>] /)
  })

  const secret = [
    [
      ['vm', 'deploy', 'demo', '-i', 'x', '--metadata', `name=${canary},b=c`, '--userdata', '-'],
      `#!/bin/sh\n${canary}`,
    ],
    [['regcred', 'add', 'https://ghcr.io', '-u', 'ci', '--password-stdin'], canary],
    [['regcred', 'add', 'https://ghcr.io', '-u', 'ci', '-p', canary], ''],
    [['vm', 'resize', 'demo', '120', '-u', 'admin', '--password-stdin'], canary],
    [['serviceaccount', 'token', 'jenkins'], ''],
    [['node', 'join-token'], ''],
    [['vm', 'list'], ''],
  ] as const
  for (const [words, input] of secret)
    it(`--debug hides secrets: ${words.slice(0, 2).join(' ')}`, async () => {
      const { stderr } = await svc3(words, input)
      assert.match(stderr, /> (?:GET|POST) /)
      assert.ok(!stderr.includes(canary), stderr)
    })

  it('--debug says when nothing answers', async () => {
    const { exitCode, stderr } = await run(['vm', 'list', '--debug'], { env: { SVC3_API_URL: 'http://127.0.0.1:1' } })
    assert.equal(exitCode, 1)
    assert.match(stderr, /< no answer after \d+ ms: No server answers/)
  })
})

describe('redaction', () => {
  it('redaction shows no field that may carry a secret, of any body or answer of the API', () => {
    const secretly = /password|token|secret|credential|userdata|privatekey|certdata|authorization/i
    const leaks: string[] = []
    const walk = (value: unknown, path: string): void => {
      if (typeof value !== 'object' || value === null) return
      for (const [name, field] of Object.entries(value)) {
        if (secretly.test(name) && typeof field === 'string' && field !== '[redacted]') leaks.push(`${path}.${name}`)
        walk(field, `${path}.${name}`)
      }
    }
    for (const { id, example } of allOperations) {
      walk(shownValue(example.body), `${id} body`)
      walk(shownValue(example.response), `${id} answer`)
    }
    assert.deepEqual(leaks, [])
  })

  it('redaction hides unknown fields, whatever is inside them, and bodies that are not JSON', () => {
    assert.equal(
      shownBody(JSON.stringify({ name: 'demo', metadata: { name: canary }, labels: { a: canary }, cpu: 3 })),
      '{"name":"demo","metadata":"[redacted]","labels":"[redacted]","cpu":3}',
    )
    assert.equal(shownBody(`code=${canary}`), '18 bytes')
    assert.equal(shownHeader('Cookie', canary), '[redacted]')
    assert.equal(
      shownUrl(`https://login.example.com/token?code=${canary}`),
      'https://login.example.com/token?[redacted]',
    )
    assert.equal(shownUrl('http://h/api/v1/namespaces?limit=1'), 'http://h/api/v1/namespaces?limit=1')
  })
})
