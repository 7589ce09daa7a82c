// Hostile requests to the port for Kubernetes clients: no body, type or query causes an internal error or writes fields that
// clients must not write.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { type KubernetesRig, startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage } from '../../../test/support/stand-ins/node.ts'

const configs = '/apis/orka.macstadium.com/v1/namespaces/orka-default/virtualmachineconfigs'
const types = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
  protobuf: 'application/vnd.kubernetes.protobuf',
} as const

let service: TestService
let kube: KubernetesRig

before(async () => {
  service = await startService()
  kube = startKubernetes(service)
  await addImage(service, 'intel', 'amd64')
  await kube.call('POST', configs, { body: { metadata: { name: 'prey' }, spec: { image: 'intel', cpu: 2 } } })
})
after(async () => {
  await kube[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

async function ask(method: string, url: string, body: unknown, type = 'application/json'): Promise<number> {
  const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  const { status, text } = await kube.call(method, url, { body: payload, headers: { 'content-type': type } })
  assert.ok(status < 500, `${method} ${url} ${type} ${String(payload).slice(0, 200)}: ${status} ${text.slice(0, 200)}`)
  return status
}
const patch = (body: unknown, type: string, query = '') => ask('PATCH', `${configs}/prey${query}`, body, type)
const startMs = () => performance.now()

/** Keys that the code reads, so that random objects get past the first checks. */
const keys = fc.constantFrom(
  ...'apiVersion kind metadata spec status name namespace labels annotations finalizers ownerReferences managedFields'.split(
    ' ',
  ),
  ...'manager operation fieldsV1 f:spec f:cpu v:1 k:{} . cpu image tags uid resourceVersion $patch $retainKeys'.split(
    ' ',
  ),
  ...'$deleteFromPrimitiveList/finalizers $setElementOrder/x op path from value constructor toString subjects'.split(
    ' ',
  ),
)
const leaf = fc.oneof(fc.string({ maxLength: 8 }), fc.integer(), fc.boolean(), fc.constant(null), fc.double(), keys)
const { value: anything } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(keys, tie('value'), { maxKeys: 6 }),
  ),
}))

describe('hostile requests to the Kubernetes API', () => {
  it('random objects, patches and options cause no internal error', async () => {
    const requests = fc.record({
      method: fc.constantFrom('POST', 'PUT', 'PATCH', 'PATCH', 'DELETE'),
      type: fc.constantFrom('application/json', ...Object.values(types)),
      body: anything,
      query: fc.constantFrom(
        '',
        '?fieldManager=a',
        '?fieldManager=a&force=true',
        '?fieldValidation=Strict',
        '?dryRun=All',
      ),
      place: fc.constantFrom(
        `${configs}/prey`,
        `${configs}/prey/status`,
        '/api/v1/namespaces/orka-default',
        '/api/v1/nodes/x',
      ),
    })
    await fc.assert(
      fc.asyncProperty(requests, async ({ method, type, body, query, place }) => {
        // The object must survive for the following requests.
        const dry = method === 'DELETE' ? '?dryRun=All' : query
        await ask(method, method === 'POST' ? `${configs}${dry}` : `${place}${dry}`, body, type)
      }),
      { numRuns: 150 },
    )
    assert.equal((await kube.call('GET', `${configs}/prey`)).body.kind, 'VirtualMachineConfig')
  })

  it('random bytes as protobuf, also with false lengths, are refused', async () => {
    const head = Buffer.from('k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12', 'latin1')
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), async (bytes) => {
        await ask('POST', '/api/v1/namespaces', Buffer.concat([head, bytes]), types.protobuf)
      }),
      { numRuns: 60 },
    )
    const long = Buffer.concat([head, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])])
    assert.equal(await ask('POST', '/api/v1/namespaces', long, types.protobuf), 400)
  })

  it('a kind, version or policy that is an object with a field toString is refused', async () => {
    const odd = { toString: 0 }
    for (const body of [{ apiVersion: odd }, { kind: odd }]) assert.equal(await ask('POST', configs, body), 400)
    for (const body of [{ kind: odd }, { propagationPolicy: odd }])
      assert.equal(await ask('DELETE', `${configs}/prey`, body), 400)
  })

  it('too deeply nested objects are refused by every verb', async () => {
    const deep = `${'{"spec":'.repeat(200)}1${'}'.repeat(200)}`
    for (const type of ['application/json', types.merge, types.strategic, types.apply])
      assert.equal(await patch(deep, type, '?fieldManager=a'), 400, type)
    assert.equal(await ask('POST', configs, deep), 400)
    const fields = `{"metadata":{"managedFields":[{"manager":"a","operation":"Apply","fieldsV1":${'{"f:a":'.repeat(100)}{}${'}'.repeat(100)}}]}}`
    assert.equal(await patch(fields, types.merge), 400)
  })

  it('patches that nest an object thousands of times are refused', async () => {
    const levels = 60
    const value = JSON.parse(`${'{"a":'.repeat(levels)}{}${'}'.repeat(levels)}`)
    const bottom = '/a'.repeat(levels + 1)
    const nesting = Array.from({ length: 200 }, (_, index) => [
      { op: 'add', path: `/spec/x${index + 1}`, value },
      { op: 'move', from: `/spec/x${index}`, path: `/spec/x${index + 1}${bottom}` },
    ]).flat()
    const steps = [{ op: 'add', path: '/spec/x0', value: {} }, ...nesting]
    assert.equal(await patch(steps, types.json), 400)
    const copied = { op: 'copy', from: '/spec/x200', path: '/spec/y' }
    assert.equal(await patch([...steps, copied], types.json), 400)
  })

  it('JSON patches without a value, and into the length of a list, are refused', async () => {
    const copy = { op: 'copy', from: '/spec/x', path: '/spec/y' }
    for (const op of ['add', 'replace', 'test'])
      assert.equal(await patch([{ op, path: '/spec/x' }, copy], types.json), 400, op)
    const list = { op: 'add', path: '/spec/list', value: ['a'] }
    assert.equal(await patch([list, { op: 'test', path: '/spec/list/length', value: 1 }], types.json), 422)
  })

  it('patches that copy or move a lot are refused quickly', async () => {
    const annotations = { 'example.com/a': 'x'.repeat(60_000) }
    assert.equal(await patch({ metadata: { annotations } }, types.merge), 200)
    const steps = (op: string) =>
      Array.from({ length: 1_000 }, (_, index) => ({
        op,
        from: op === 'move' && index % 2 === 1 ? '/spec/y' : '/metadata/annotations',
        path:
          op === 'move' && index % 2 === 1 ? '/metadata/annotations' : op === 'move' ? '/spec/y' : `/spec/x${index}`,
      }))
    for (const op of ['copy', 'move']) {
      const started = startMs()
      await patch(steps(op), types.json, '?dryRun=All')
      assert.ok(performance.now() - started < 5_000, op)
    }
    const doubling = Array.from({ length: 60 }, (_, index) => ({
      op: 'copy',
      from: '/metadata',
      path: `/metadata/x${index}`,
    }))
    assert.equal(await patch(doubling, types.json), 400)
    const within = [{ op: 'move', from: '/metadata', path: '/metadata/x' }]
    assert.equal(await patch(within, types.json), 400)
  })

  it('more fields than a record may have are refused', async () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, '']))
    assert.equal(await patch({ metadata: { annotations: many(6_000) } }, types.merge), 422)
    const fieldsV1 = Object.fromEntries(Array.from({ length: 6_000 }, (_, index) => [`f:a${index}`, {}]))
    const managedFields = [{ manager: 'a', operation: 'Apply', fieldsV1 }]
    assert.equal(await patch({ metadata: { managedFields } }, types.merge), 422)
    assert.equal(await patch({ metadata: { labels: many(100) } }, types.merge), 422)
    for (let index = 0; index < 20; index++)
      assert.equal(await patch({ metadata: { name: 'prey' } }, types.apply, `?fieldManager=none${index}`), 200)
    const bodies = Array.from({ length: 21 }, (_, index) => ({
      metadata: { name: 'prey', labels: { [`l${index}`]: 'x' } },
    }))
    const answers = []
    for (const [index, body] of bodies.entries())
      answers.push(await patch(body, types.apply, `?fieldManager=m${index}`))
    assert.deepEqual(answers.toSorted(), [...Array.from({ length: 20 }, () => 200), 422])
  })

  it('clients cannot set fields that only the server writes', async () => {
    const metadata = {
      name: 'sly',
      uid: 'mine',
      generation: 99,
      creationTimestamp: '1999-01-01T00:00:00Z',
      deletionTimestamp: '1999-01-01T00:00:00Z',
      deletion: { at: 'now', by: { kind: 'user', name: 'x', admin: true } },
      annotations: { 'orka.macstadium.com/created-by': 'root@example.com', 'svc3/used-by': 'x' },
    }
    const sent = { metadata, spec: { image: 'intel' } }
    const { body } = await kube.call('POST', configs, { body: sent, token: service.devToken })
    assert.notEqual(body.metadata.uid, 'mine')
    assert.equal(body.metadata.generation, 1)
    assert.equal(body.metadata.deletionTimestamp, undefined)
    assert.notEqual(body.metadata.creationTimestamp, metadata.creationTimestamp)
    assert.notEqual(body.metadata.annotations['orka.macstadium.com/created-by'], 'root@example.com')
    assert.equal(body.metadata.annotations['svc3/used-by'], undefined)
  })

  it('names of managers and programs have a maximum length', async () => {
    const long = 'm'.repeat(129)
    assert.equal(await patch({ metadata: { labels: { a: '1' } } }, types.merge, `?fieldManager=${long}`), 400)
    assert.equal(await patch({ metadata: { labels: { a: '1' } } }, types.merge, '?fieldManager=%0a'), 400)
    const headers = { 'content-type': types.merge, 'user-agent': `${'ü'.repeat(300)}/1` }
    const { body } = await kube.call('PATCH', `${configs}/prey`, {
      body: { metadata: { labels: { a: '2' } } },
      headers,
    })
    for (const { manager } of body.metadata.managedFields) assert.match(manager, /^[\x20-\x7e]{1,128}$/)
  })
})
