// Challenges as registries write them, and texts without secrets.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseRetryAfter } from '../../platform/retry.ts'
import { type Challenge, parseChallenges } from './challenge.ts'
import { Redactor, redactUrl } from './redact.ts'

const bearer = (realm: string, service?: string): Challenge => ({ scheme: 'bearer', realm, service })

describe('a challenge', () => {
  const cases: readonly (readonly [string, readonly Challenge[]])[] = [
    ['Basic realm="Registry"', [{ scheme: 'basic' }]],
    ['basic', [{ scheme: 'basic' }]],
    [
      'Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push"',
      [bearer('https://auth.example/token', 'registry.example')],
    ],
    ['Bearer service=x , realm = "https://a/t"', [bearer('https://a/t', 'x')]],
    ['Bearer realm="a\\"b"', [bearer('a"b')]],
    ['Bearer realm="https://a/t", Basic realm="x"', [bearer('https://a/t'), { scheme: 'basic' }]],
    ['Negotiate, Basic realm="x"', [{ scheme: 'basic' }]],
    ['Bearer', []],
    ['', []],
    ['=,="', []],
    [`Bearer realm="${'x'.repeat(10_000)}"`, []],
  ]
  for (const [header, challenges] of cases)
    it(`a challenge: ${header.slice(0, 40)} is read`, () => assert.deepEqual(parseChallenges(header), challenges))

  it('a challenge never hangs or throws', () => {
    fc.assert(fc.property(fc.string({ maxLength: 300 }), (header) => Array.isArray(parseChallenges(header))))
  })
})

describe('words without secrets', () => {
  it('words without secrets have none of their spellings', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 6, unit: 'binary-ascii' }), fc.string(), (secret, around) => {
        const redactor = new Redactor([secret])
        const spellings = [
          secret,
          encodeURIComponent(secret),
          Buffer.from(secret).toString('base64'),
          JSON.stringify(secret),
        ]
        for (const spelling of spellings) assert.ok(!redactor.words(`${around}<${spelling}>`).includes(secret))
      }),
    )
  })

  it('words without secrets are short and printable', () => {
    const redactor = new Redactor([''])
    assert.equal(redactor.words('a\u001b[31m\nb'), 'a [31m b')
    assert.equal(redactor.words('x'.repeat(1_000)).length, 201)
  })

  it('words without secrets are addresses without user info and query', () => {
    assert.equal(redactUrl('https://user:canary@host:5000/v2/x?_state=canary#canary'), 'https://host:5000/v2/x')
    assert.equal(redactUrl('canary'), '(invalid address)')
  })
})

describe('Retry-After', () => {
  it('Retry-After is seconds or a date', () => {
    assert.equal(parseRetryAfter('7', 0), 7_000)
    assert.equal(parseRetryAfter('Thu, 01 Jan 1970 00:00:09 GMT', 4_000), 5_000)
    assert.equal(parseRetryAfter('Thu, 01 Jan 1970 00:00:09 GMT', 14_000), 0)
    assert.equal(parseRetryAfter('soon', 0), undefined)
    assert.equal(parseRetryAfter(undefined, 0), undefined)
  })
})
