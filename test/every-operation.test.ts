// Every operation of the table, without exception: who may call it, what a bad request gets, and that its own example
// works and is what it says.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Ajv } from 'ajv'
import { SignJWT } from 'jose'
import { allOperations } from '../src/api/index.ts'
import type { Allow, Operation } from '../src/api/operation.ts'
import { type Answer, startService, type TestService } from './support/service.ts'

let service: TestService
before(async () => {
  service = await startService()
})
after(() => service[Symbol.asyncDispose]())

const urlOf = ({ path, example }: Operation, namespace = 'svc-default'): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(name === 'namespace' ? namespace : (example.params?.[name] ?? 'x')),
  )

const callExample = (operation: Operation, token: string | null, namespace?: string): Promise<Answer> =>
  service.call(operation.method, urlOf(operation, namespace), { token, body: operation.example.body })

/** Caller → what each permission answers: undefined stands for "not refused for who it is". */
type Verdicts = Readonly<Record<Allow, 401 | 403 | undefined>>
const open = { anyone: undefined }
const callers: Readonly<
  Record<string, { token: () => Promise<string | null>; namespace?: string; verdicts: Verdicts }>
> = {
  anonymous: { token: async () => null, verdicts: { ...open, user: 401, dev: 401, admin: 401 } },
  'bearer of an expired token': { token: expired, verdicts: { ...open, user: 401, dev: 401, admin: 401 } },
  'bearer of a forged token': { token: forged, verdicts: { ...open, user: 401, dev: 401, admin: 401 } },
  'developer of the namespace': {
    token: async () => service.devToken,
    verdicts: { ...open, user: undefined, dev: undefined, admin: 403 },
  },
  'developer of another namespace': {
    token: async () => service.devToken,
    namespace: 'svc-other',
    verdicts: { ...open, user: undefined, dev: 403, admin: 403 },
  },
  administrator: {
    token: async () => service.adminToken,
    verdicts: { ...open, user: undefined, dev: undefined, admin: undefined },
  },
}

async function expired(): Promise<string> {
  const token = await service.tokenFor({ kind: 'user', name: 'late@example.com', admin: true })
  service.clock.nowMs += 2 * 3_600_000
  return token
}

async function forged(): Promise<string> {
  const claims = { kind: 'user', admin: true }
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('x')
    .setIssuer('svc3')
    .setAudience('svc3-api')
    .setExpirationTime('1h')
    .sign(Buffer.alloc(32))
}

describe('every operation', () => {
  for (const operation of allOperations) {
    for (const [caller, { token, namespace, verdicts }] of Object.entries(callers)) {
      const verdict =
        operation.path.includes('{namespace}') || !namespace
          ? verdicts[operation.allow]
          : callers['developer of the namespace']?.verdicts[operation.allow]
      it(`${operation.id} by ${caller}: ${verdict ?? 'not refused'}`, async () => {
        const nowMs = service.clock.nowMs
        const answer = await callExample(operation, await token(), namespace)
        service.clock.nowMs = nowMs
        if (verdict) {
          assert.equal(answer.status, verdict, answer.text)
          assert.equal(answer.body.kind, 'Status')
          assert.match(answer.body.message, verdict === 401 ? /Unauthorized/ : /Forbidden/)
          assert.ok(answer.body.hint && answer.body.requestId)
        } else {
          assert.ok(answer.status !== 401 && answer.status !== 403, answer.text)
        }
      })
    }
  }
})

describe('the example of every operation', () => {
  const ajv = new Ajv({ strict: false, validateFormats: false })
  for (const operation of allOperations) {
    it(`${operation.id} is what its schemas say`, () => {
      if (operation.body) assert.ok(ajv.validate(operation.body, operation.example.body), ajv.errorsText())
      assert.ok(ajv.validate(operation.response, operation.example.response), ajv.errorsText())
    })

    it(`${operation.id} succeeds, with an answer of its schema`, async () => {
      await using fresh = await startService()
      if (operation.id === 'removeRegistryCredential') {
        const body = { server: 'https://ghcr.io', username: 'a', password: 'b' }
        await fresh.call('POST', urlOf(operation).replace('/remove', '/add'), { body })
      }
      const answer = await fresh.call(operation.method, urlOf(operation), { body: operation.example.body })
      assert.equal(answer.status, operation.status, answer.text)
      assert.match(String(answer.headers['content-type']), operation.produces ? /^text\/plain/ : /^application\/json/)
      if (!operation.produces) assert.ok(ajv.validate(operation.response, answer.body), ajv.errorsText())
    })
  }
})

describe('bad requests to every operation', () => {
  const bodies: Readonly<Record<string, unknown>> = {
    'no JSON': '{"server":',
    'an array': [],
    'a text': '"text"',
    null: 'null',
    nothing: '',
    'wrong types': { server: 1, username: {}, password: [], allowInsecure: 'yes', replace: 0 },
    __proto__: '{"__proto__":{"admin":true},"server":"https://ghcr.io"}',
    'nested too deep': `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  }
  for (const operation of allOperations.filter(({ body }) => body)) {
    for (const [name, body] of Object.entries(bodies)) {
      it(`${operation.id} with ${name}: a clear 4xx and no change`, async () => {
        const rev = service.services.collections.registryCredentials.view.rev
        const answer = await service.call(operation.method, urlOf(operation), { body })
        assert.equal(answer.status, 400, answer.text)
        assert.equal(answer.body.reason, 'BadRequest')
        assert.ok(answer.body.message.length > 10 && answer.body.hint, answer.text)
        assert.equal(service.services.collections.registryCredentials.view.rev, rev)
      })
    }
  }

  for (const operation of allOperations.filter(({ path }) => path.includes('{namespace}'))) {
    for (const namespace of [
      'svc-missing',
      'a'.repeat(500),
      '..',
      '\u0000',
      'ünïcode',
      '%2e%2e%2f',
      "'; drop table entries",
    ]) {
      it(`${operation.id} in the namespace ${JSON.stringify(namespace).slice(0, 20)}: 404`, async () => {
        const answer = await service.call(operation.method, urlOf(operation, namespace), {
          body: operation.example.body,
        })
        assert.equal(answer.status, 404, answer.text)
        assert.match(answer.body.message, /not found/)
      })
    }
  }
})
