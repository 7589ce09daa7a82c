// Every operation of the table, without exception: who may call it, what a bad request gets, and that its own example
// works and is what it says.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Ajv } from 'ajv'
import { SignJWT } from 'jose'
import { codes } from '../src/api/errors.ts'
import { allOperations } from '../src/api/index.ts'
import type { Allow, Operation } from '../src/api/operation.ts'
import { fileForm, makePair } from './support/certificates.ts'
import { type Answer, type CallOptions, startService, type TestService } from './support/service.ts'

let service: TestService
before(async () => {
  service = await startService({ settings: { limits: { anonymousPerMinute: 1_000_000 } } })
})
after(() => service[Symbol.asyncDispose]())

const urlOf = ({ path, example }: Operation, namespace = example.params?.namespace ?? ''): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(name === 'namespace' ? namespace : (example.params?.[name] ?? 'x')),
  )

/** The body as the operation takes it. */
const encoded = async ({ consumes }: Operation, body: unknown): Promise<CallOptions> =>
  consumes ? fileForm(body as Record<string, string>) : { body }

const callExample = async (operation: Operation, token: string | null, namespace?: string): Promise<Answer> => {
  const request = await encoded(operation, operation.example.body)
  return service.call(operation.method, urlOf(operation, namespace), { ...request, token })
}

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
  'service account of the namespace': {
    token: () => accountToken('svc-default'),
    verdicts: { ...open, user: undefined, dev: undefined, admin: 403 },
  },
  'service account of another namespace': {
    token: () => accountToken('svc-elsewhere'),
    namespace: 'svc-default',
    verdicts: { ...open, user: undefined, dev: 403, admin: 403 },
  },
  'agent of a node, which the API does not know yet': {
    token: agentToken,
    verdicts: { ...open, user: 401, dev: 401, admin: 401 },
  },
  'deleted service account': { token: deletedAccountToken, verdicts: { ...open, user: 401, dev: 401, admin: 401 } },
  administrator: {
    token: async () => service.adminToken,
    verdicts: { ...open, user: undefined, dev: undefined, admin: undefined },
  },
}

async function accountToken(namespace: string): Promise<string> {
  const { collections } = service.services
  const uid = collections.serviceAccounts.get(namespace, 'robot')?.value.uid ?? `uid-of-${namespace}`
  if (!collections.serviceAccounts.get(namespace, 'robot')) {
    await collections.serviceAccounts.create(namespace, 'robot', { name: 'robot', namespace, uid, createdAt: '' })
  }
  return service.tokenFor({ kind: 'serviceaccount', name: 'robot', namespace, uid })
}

/** Signed by the service's own key, but of a kind that no operation is for. */
function agentToken(): Promise<string> {
  const agent = { kind: 'agent', name: 'mini-1', uid: 'u' } as unknown
  return service.tokenFor(agent as Parameters<TestService['tokenFor']>[0])
}

async function deletedAccountToken(): Promise<string> {
  const { serviceAccounts } = service.services.collections
  const account = { name: 'gone', namespace: 'svc-default', uid: 'first', createdAt: '' }
  const token = await service.tokenFor({ kind: 'serviceaccount', ...account })
  const entry = await serviceAccounts.create('svc-default', 'gone', account)
  assert.ok(await service.services.tokens.verify(token))
  await serviceAccounts.delete(entry)
  // Made again under the same name: another account, which the token was not made for.
  await serviceAccounts.delete(await serviceAccounts.create('svc-default', 'gone', { ...account, uid: 'second' }))
  return token
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
          const expected = [
            operation.status,
            ...Object.keys(operation.also ?? {}).map(Number),
            400,
            ...operation.refuses.map((reason) => codes[reason]),
          ]
          assert.ok(expected.includes(answer.status) && answer.status !== 401 && answer.status !== 403, answer.text)
        }
      })
    }
  }
})

/** What must be there before the example of an operation can succeed. */
const inDefault = '/api/v1/namespaces/svc-default'
const account = (fresh: TestService) => fresh.call('POST', `${inDefault}/serviceaccounts/jenkins`)
const prerequisites: Readonly<Record<string, (fresh: TestService) => Promise<unknown>>> = {
  removeRegistryCredential: (fresh) =>
    fresh.call('POST', `${inDefault}/secrets/registrycredentials/add`, {
      body: { server: 'https://ghcr.io', username: 'a', password: 'b' },
    }),
  deleteNamespace: (fresh) => fresh.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } }),
  deleteServiceAccount: account,
  createServiceAccountToken: account,
}

/** Examples that are cut short for the reader. */
const wholeBodies: Readonly<Record<string, () => Promise<unknown>>> = {
  uploadCertificate: async () => {
    const { cert, key } = await makePair()
    return { certPath: cert, keyPath: key }
  },
}

describe('the example of every operation', () => {
  const ajv = new Ajv({ strict: false, validateFormats: false })
  for (const operation of allOperations) {
    it(`${operation.id} is what its schemas say`, () => {
      if (operation.body) assert.ok(ajv.validate(operation.body, operation.example.body), ajv.errorsText())
      assert.ok(ajv.validate(operation.response, operation.example.response), ajv.errorsText())
    })

    it(`${operation.id} succeeds, with an answer of its schema`, async () => {
      await using fresh = await startService()
      await prerequisites[operation.id]?.(fresh)
      const body = (await wholeBodies[operation.id]?.()) ?? operation.example.body
      const answer = await fresh.call(operation.method, urlOf(operation), await encoded(operation, body))
      assert.equal(answer.status, operation.status, answer.text)
      assert.match(String(answer.headers['content-type']), operation.produces ? /^text\/plain/ : /^application\/json/)
      if (!operation.produces) assert.ok(ajv.validate(operation.response, answer.body), ajv.errorsText())
    })
  }
})

/** The same fields, none of them of its type. */
const wrongTypes = (body: object): object =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, typeof value === 'object' ? 'text' : { no: value }]),
  )

describe('bad requests to every operation', () => {
  const bodies: Readonly<Record<string, unknown>> = {
    'no JSON': '{"server":',
    'an array': [],
    'a text': '"text"',
    null: 'null',
    nothing: '',
    __proto__: '{"__proto__":{"admin":true},"server":"https://ghcr.io"}',
    'nested too deep': `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  }
  for (const operation of allOperations.filter(({ body }) => body)) {
    const cases = { ...bodies, 'wrong types': wrongTypes(operation.example.body as object) }
    for (const [name, body] of Object.entries(cases)) {
      if (operation.bodyIsOptional && (name === 'null' || name === 'nothing')) continue
      it(`${operation.id} with ${name}: a clear 4xx and no change`, async () => {
        const { rev } = await service.services.store.list('/none/')
        const answer = await service.call(operation.method, urlOf(operation), { body })
        // Where no single field is required, an empty body can be read, and is refused for what it lacks.
        const isReadable = name === 'nothing' && !(operation.body as { required?: unknown[] }).required?.length
        assert.equal(answer.status, isReadable ? 422 : 400, answer.text)
        assert.equal(answer.body.reason, isReadable ? 'Invalid' : 'BadRequest')
        assert.ok(answer.body.message.length > 10 && answer.body.hint, answer.text)
        assert.equal((await service.services.store.list('/none/')).rev, rev)
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
