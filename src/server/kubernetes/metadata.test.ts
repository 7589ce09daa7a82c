// Metadata of objects, managers of their fields, and finalizers.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type KubernetesRig, startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode } from '../../../test/support/stand-ins/node.ts'

const inDefault = '/apis/orka.macstadium.com/v1/namespaces/orka-default'
const configs = `${inDefault}/virtualmachineconfigs`
const merge = { 'content-type': 'application/merge-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }
const strategic = { 'content-type': 'application/strategic-merge-patch+json' }
const finalizers = ['example.com/backup']
const owner = { apiVersion: 'example.com/v1', kind: 'Team', name: 'ios', uid: 'u-1' }

let service: TestService
let kube: KubernetesRig

before(async () => {
  service = await startService()
  kube = startKubernetes(service)
  await addImage(service, 'intel', 'amd64')
  await startNode(service)
})
after(async () => {
  await kube[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const config = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: 'orka.macstadium.com/v1',
  kind: 'VirtualMachineConfig',
  metadata: { name, ...metadata },
  spec: { image: 'intel', ...spec },
})
const patch = (url: string, body: unknown, headers: Record<string, string> = merge, token?: string) =>
  kube.call('PATCH', url, { body, headers, ...(token !== undefined && { token }) })
const create = (body: unknown, token?: string) =>
  kube.call('POST', configs, { body, ...(token !== undefined && { token }) })
const applyAs = (name: string, spec: object, manager: string, more = '') =>
  patch(`${configs}/${name}?fieldManager=${manager}${more}`, { ...config(name), spec }, apply)
const managers = (body: { metadata: { managedFields?: { manager: string; operation: string }[] } }): string[] =>
  (body.metadata.managedFields ?? []).map(({ manager, operation }) => `${manager} ${operation}`).toSorted()

describe('metadata of objects of the Kubernetes API', () => {
  it('the first version of an object has its metadata', async () => {
    const metadata = { labels: { a: 'b' }, annotations: { 'example.com/x': '1' }, finalizers, ownerReferences: [owner] }
    const { body } = await kube.call('POST', `${configs}?fieldManager=ci`, { body: config('whole', {}, metadata) })
    for (const [name, value] of Object.entries(metadata).filter(
      ([each]) => each !== 'labels' && each !== 'annotations',
    ))
      assert.deepEqual(body.metadata[name], value)
    assert.deepEqual(managers(body), ['ci Update'])
    assert.equal(body.metadata.generation, 1)
    const { resourceVersion } = body.metadata
    const watching = await kube.watch(`${configs}?watch=true&fieldSelector=metadata.name%3Dwhole`)
    await watching.until(1)
    const [{ object }] = watching.events as [{ object: typeof body }]
    // One write, so that a crash cannot lose the metadata.
    assert.equal(object.metadata.resourceVersion, resourceVersion)
    assert.equal(object.metadata.labels.a, 'b')
  })

  it('label changes within a minute are one event, with their count and the times of the first and the last', async () => {
    await create(config('counted'))
    for (const n of ['1', '2']) {
      await patch(`${configs}/counted`, { metadata: { labels: { n } } })
      service.clock.nowMs += 10_000
    }
    const { body } = await kube.call('GET', '/api/v1/namespaces/svc-default/events')
    const [event, ...others] = body.items.filter(
      ({ reason, involvedObject }: { reason: string; involvedObject: { name: string } }) =>
        reason === 'SetMetadata' && involvedObject.name === 'counted',
    )
    assert.deepEqual([event.count, others], [2, []])
    assert.equal(Date.parse(event.lastTimestamp) - Date.parse(event.firstTimestamp), 10_000)
  })

  it('the generation increases with changes of the spec through either API, and not with metadata', async () => {
    await create(config('gen', { cpu: 2 }))
    const of = async (): Promise<number> => (await kube.call('GET', `${configs}/gen`)).body.metadata.generation
    await patch(`${configs}/gen`, { metadata: { labels: { a: 'b' } } })
    assert.equal(await of(), 1)
    await patch(`${configs}/gen`, { spec: { cpu: 4 } })
    assert.equal(await of(), 2)
    const { status } = await service.call('PUT', '/api/v1/namespaces/svc-default/vmconfigs/gen', {
      body: { image: 'intel', cpu: 6 },
    })
    assert.equal(status, 200)
    assert.equal(await of(), 3)
    const { body } = await kube.call('GET', `${configs}/gen`)
    assert.equal(body.metadata.labels.a, 'b')
  })

  it('kinds of Kubernetes itself store metadata of callers who may change them', async () => {
    const accounts = '/api/v1/namespaces/orka-default/serviceaccounts'
    const bindings = '/apis/rbac.authorization.k8s.io/v1/namespaces/orka-default/rolebindings'
    const sa = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'kept', labels: { a: 'b' } } }
    assert.equal((await kube.call('POST', accounts, { body: sa })).body.metadata.labels.a, 'b')
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'orka-dev', labels: { a: 'b' } },
      subjects: [{ kind: 'User', name: 'ana@example.com' }],
    }
    assert.equal((await kube.call('POST', bindings, { body: binding })).body.metadata.labels.a, 'b')
    const places = [
      '/api/v1/namespaces/orka-default',
      '/api/v1/nodes/node-1',
      `${inDefault}/orkanodes/node-1`,
      `${accounts}/kept`,
      `${bindings}/orka-dev`,
    ]
    for (const url of places) {
      const body = { metadata: { labels: { team: 'ios' }, annotations: { 'example.com/x': url } } }
      assert.ok([403, 404].includes((await patch(url, body, merge, service.devToken)).status), url)
      assert.equal((await patch(url, body)).status, 200, url)
      const { metadata } = (await kube.call('GET', url)).body
      assert.equal(metadata.labels.team, 'ios', url)
      assert.equal(metadata.annotations['example.com/x'], url)
      assert.equal((await patch(url, { metadata: { labels: { team: null } } })).body.metadata.labels.team, undefined)
    }
    // Adding subjects leaves the metadata unchanged.
    const subjects = [{ kind: 'User', name: 'ana@example.com' }, { kind: 'User', name: 'bo@example.com' }] // biome-ignore format: a list
    const { body } = await patch(`${bindings}/orka-dev`, { subjects })
    assert.equal(body.metadata.labels.a, 'b')
    assert.equal(body.metadata.generation, 2)
    const lost = await kube.call('GET', `${bindings.replace('default', 'none')}/orka-dev`)
    assert.equal(lost.status, 404)
    const ref = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'orka-dev' }
    const strict = await kube.call('POST', `${bindings}?fieldValidation=Strict`, { body: { ...binding, roleRef: ref } })
    assert.equal(strict.status, 201)
    const placed = '/api/v1/namespaces/svc-default/metadata/namespaces/svc-other'
    assert.equal((await service.call('PUT', placed, { body: { labels: {}, annotations: {} } })).status, 404)
  })

  it('strategic patches merge lists by key, and accept directives', async () => {
    const url = '/api/v1/nodes/node-1'
    const given = { metadata: { finalizers: ['a/1', 'a/2'], ownerReferences: [owner] } }
    await patch(url, given, strategic)
    const more = { metadata: { finalizers: ['a/3'], ownerReferences: [{ ...owner, uid: 'u-2' }] } }
    const { metadata } = (await patch(url, more, strategic)).body
    assert.deepEqual(metadata.finalizers, ['a/1', 'a/2', 'a/3'])
    assert.deepEqual(
      metadata.ownerReferences.map(({ uid }: { uid: string }) => uid),
      ['u-1', 'u-2'],
    )
    const less = {
      metadata: {
        '$deleteFromPrimitiveList/finalizers': ['a/2'],
        '$setElementOrder/finalizers': ['a/1', 'a/3'],
        ownerReferences: [{ $patch: 'delete', uid: 'u-1' }],
        labels: { $patch: 'replace', only: 'one' },
      },
    }
    const left = (await patch(url, less, strategic)).body.metadata
    assert.deepEqual(left.finalizers, ['a/1', 'a/3'])
    assert.equal(left.ownerReferences.length, 1)
    assert.equal(left.labels.only, 'one')
    assert.equal((await patch(url, { metadata: { $patch: 'turn' } }, strategic)).status, 400)
    await patch(url, { metadata: { finalizers: null, ownerReferences: null } })
  })
})

describe('server-side apply', () => {
  it('a conflict names the other managers, and force takes their fields', async () => {
    assert.equal((await applyAs('ssa', { image: 'intel', cpu: 4 }, 'git')).status, 201)
    const refused = await applyAs('ssa', { image: 'intel', cpu: 8 }, 'ops')
    assert.equal(refused.status, 409)
    assert.equal(refused.body.message, 'Apply failed with 1 conflict: conflict with "git": .spec.cpu')
    assert.deepEqual(refused.body.details.causes, [
      { reason: 'FieldManagerConflict', message: 'conflict with "git"', field: '.spec.cpu' },
    ])
    const dry = await applyAs('ssa', { image: 'intel', cpu: 8 }, 'ops', '&force=true&dryRun=All')
    assert.equal(dry.body.spec.cpu, 8)
    assert.deepEqual(managers(dry.body), ['git Apply', 'ops Apply'])
    assert.deepEqual(managers((await kube.call('GET', `${configs}/ssa`)).body), ['git Apply'])
    const forced = await applyAs('ssa', { image: 'intel', cpu: 8 }, 'ops', '&force=true')
    assert.equal(forced.body.spec.cpu, 8)
    const again = await applyAs('ssa', { image: 'intel', cpu: 8 }, 'ops')
    assert.equal(again.body.metadata.resourceVersion, forced.body.metadata.resourceVersion)
    // A field without managers returns to its default.
    await applyAs('ssa', { image: 'intel' }, 'ops')
    assert.equal(
      (await kube.call('GET', `${configs}/ssa`)).body.spec.cpu,
      (await create(config('plain'))).body.spec.cpu,
    )
  })

  it('a patch takes fields from the manager that applied them', async () => {
    await applyAs('taken', { image: 'intel', cpu: 4 }, 'git')
    await patch(`${configs}/taken?fieldManager=hand`, { spec: { cpu: 6 } })
    const refused = await applyAs('taken', { image: 'intel', cpu: 4 }, 'git')
    assert.match(refused.body.message, /conflict with "hand" using orka.macstadium.com\/v1 at .*: \.spec\.cpu/)
  })

  it('an apply may name some fields only, and the merged object is validated', async () => {
    const node = `${inDefault}/orkanodes/node-1?fieldManager=git`
    const tags = (...of: unknown[]) => ({ metadata: { name: 'node-1' }, spec: { tags: of } })
    await patch(`${inDefault}/orkanodes/node-1`, { spec: { tags: ['hand'] } })
    assert.deepEqual((await patch(node, tags('git'), apply)).body.spec.tags.toSorted(), ['git', 'hand'])
    assert.deepEqual((await patch(node, tags(), apply)).body.spec.tags, ['hand'])
    assert.equal((await patch(node, tags(1), apply)).status, 422)
    assert.equal(
      (await patch(`${configs}/nothing?fieldManager=git`, { ...config('nothing'), spec: { cpu: 'x' } }, apply)).status,
      422,
    )
  })

  it('objects that REST created have no managers', async () => {
    await service.call('POST', '/api/v1/namespaces/svc-default/vmconfigs', {
      body: { name: 'rest', image: 'intel', cpu: 4 },
    })
    assert.match((await applyAs('rest', { cpu: 6 }, 'git')).body.message, /"before-first-apply"/)
    assert.equal((await applyAs('rest', { cpu: 4 }, 'git')).status, 200)
  })

  it('clients may rewrite or reset managedFields', async () => {
    await create(config('entries'))
    const entry = {
      manager: 'x',
      operation: 'Apply',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { 'f:image': {} } },
    }
    const set = await patch(`${configs}/entries`, { metadata: { managedFields: [entry] } })
    assert.deepEqual(managers(set.body), ['x Apply'])
    const reset = await patch(`${configs}/entries`, { metadata: { managedFields: [{}] } })
    assert.deepEqual(managers(reset.body), [])
    const { resourceVersion } = reset.body.metadata
    const steps = (version: string) => [
      { op: 'add', path: '/metadata/managedFields', value: [entry] },
      { op: 'replace', path: '/metadata/resourceVersion', value: version },
    ]
    // kubectl does so when it moves to server-side apply.
    const jsonPatch = { 'content-type': 'application/json-patch+json' }
    assert.deepEqual(managers((await patch(`${configs}/entries`, steps(resourceVersion), jsonPatch)).body), ['x Apply'])
    assert.equal((await patch(`${configs}/entries`, steps(resourceVersion), jsonPatch)).status, 409)
    const bad = { metadata: { managedFields: [{ ...entry, fieldsV1: { spec: 1 } }] } }
    assert.equal((await patch(`${configs}/entries`, bad)).status, 400)
    const inApply = { ...config('entries', {}, { managedFields: [entry] }) }
    assert.equal((await patch(`${configs}/entries?fieldManager=a`, inApply, apply)).status, 400)
  })

  it('two concurrent patches both take effect', async () => {
    await create(config('both'))
    const labels = Array.from({ length: 4 }, (_, index) => ({ [`l${index}`]: 'x' }))
    const answers = await Promise.all(labels.map((each) => patch(`${configs}/both`, { metadata: { labels: each } })))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    const { body } = await kube.call('GET', `${configs}/both`)
    for (const each of labels) assert.equal(body.metadata.labels[Object.keys(each)[0] ?? ''], 'x')
  })
})

describe('finalizers', () => {
  it('an object with finalizers is deleted after the last one, in the name of the caller who deleted it', async () => {
    const made = await create(config('held', {}, { finalizers }))
    const url = `${configs}/held`
    assert.equal((await kube.call('DELETE', url, { token: service.devToken })).status, 403)
    assert.equal((await kube.call('GET', url)).body.metadata.deletionTimestamp, undefined)
    const dry = await kube.call('DELETE', `${url}?dryRun=All`)
    assert.ok(dry.body.metadata.deletionTimestamp)
    const marked = await kube.call('DELETE', url)
    assert.equal(marked.status, 200)
    assert.ok(marked.body.metadata.deletionTimestamp)
    assert.equal(marked.body.metadata.deletionGracePeriodSeconds, 0)
    assert.notEqual(marked.body.metadata.resourceVersion, made.body.metadata.resourceVersion)
    const twice = await kube.call('DELETE', url)
    assert.equal(twice.body.metadata.resourceVersion, marked.body.metadata.resourceVersion)
    const added = await patch(url, { metadata: { finalizers: [...finalizers, 'example.com/more'] } })
    assert.equal(added.status, 422)
    assert.equal((await patch(url, { metadata: { labels: { a: 'b' } } })).status, 200)
    // A caller who removes a finalizer needs no permission to delete the object.
    const last = await patch(url, { metadata: { finalizers: null } }, merge, service.devToken)
    assert.equal(last.status, 200)
    assert.equal((await kube.call('GET', url)).status, 404)
    const events = await service.call('GET', '/api/v1/namespaces/svc-default/events')
    const deleted = events.body.items.filter(
      (event: { reason: string; involved: { name: string } }) =>
        event.reason === 'DeleteVmConfig' && event.involved.name === 'held',
    )
    assert.deepEqual(
      deleted.map(({ actor }: { actor: string }) => actor),
      ['admin@example.com'],
    )
  })

  it('only callers who may delete an object can set its finalizers and owners', async () => {
    const { images } = service.services.collections
    for (const [name, fields] of [
      ['built-in', { protected: true }],
      ['foreign', { sourceNamespace: 'svc-blue' }],
    ] as const) {
      await addImage(service, name, 'amd64')
      await images.change(images.key('', name), (record) => record && { ...record, ...fields })
    }
    await create(config('of-others'))
    for (const url of [`${inDefault}/images/built-in`, `${inDefault}/images/foreign`, `${configs}/of-others`]) {
      for (const metadata of [{ finalizers }, { ownerReferences: [owner] }]) {
        const refused = await patch(url, { metadata }, merge, service.devToken)
        assert.equal(refused.status, 403, refused.text)
        assert.equal((await patch(url, { metadata })).status, 200)
      }
      const labelled = await patch(url, { metadata: { annotations: { a: 'b' } } }, merge, service.devToken)
      // Users of a namespace share its configurations, but not the images of others.
      const expected = url.startsWith(configs) ? [200, finalizers] : [403, undefined]
      assert.deepEqual([labelled.status, labelled.body.metadata.finalizers], expected)
    }
    const own = await patch(`${inDefault}/images/intel`, { metadata: { finalizers } }, merge, service.devToken)
    assert.equal(own.status, 200, 'made in a namespace of theirs')
  })

  it('REST does not wait for finalizers', async () => {
    await create(config('rested', {}, { finalizers }))
    assert.equal((await service.call('DELETE', '/api/v1/namespaces/svc-default/vmconfigs/rested')).status, 200)
    assert.equal((await kube.call('GET', `${configs}/rested`)).status, 404)
  })

  it('a deletion checks preconditions and policies', async () => {
    const { body } = await create(config('pre'))
    const url = `${configs}/pre`
    const remove = (options: object) => kube.call('DELETE', url, { body: { kind: 'DeleteOptions', ...options } })
    assert.equal((await remove({ preconditions: { uid: 'x' } })).status, 409)
    assert.equal((await remove({ preconditions: { resourceVersion: '1' } })).status, 409)
    assert.equal((await remove({ propagationPolicy: 'Sideways' })).status, 400)
    const { uid, resourceVersion } = body.metadata
    const options = { preconditions: { uid, resourceVersion }, propagationPolicy: 'Foreground' }
    assert.equal((await remove(options)).status, 200)
  })
})

describe('fields other than the spec', () => {
  it('clients cannot change the status', async () => {
    const url = `${inDefault}/orkanodes/node-1/status`
    const { body } = await kube.call('GET', url)
    assert.equal((await kube.call('PUT', url, { body })).status, 200)
    assert.equal((await patch(url, { metadata: { labels: { a: 'ignored' } } })).body.metadata.labels.a, undefined)
    assert.equal((await patch(url, { status: { phase: 'GONE' } })).status, 422)
    assert.equal((await kube.call('PUT', url, { body: { metadata: { resourceVersion: '1' } } })).status, 409)
  })

  it('duplicate fields are refused or get a warning', async () => {
    const text = '{"metadata":{"name":"twice"},"spec":{"cpu":2,"image":"intel","cpu":4}}'
    const strict = await kube.call('POST', `${configs}?fieldValidation=Strict`, { body: text })
    assert.equal(strict.status, 400)
    assert.match(strict.body.message, /strict decoding error: duplicate field "spec.cpu"/)
    const warned = await kube.call('POST', `${configs}?fieldValidation=Warn&dryRun=All`, { body: text })
    assert.match(String(warned.headers.warning), /duplicate field \\"spec.cpu\\"/)
    const ignored = await kube.call('POST', `${configs}?fieldValidation=Ignore&dryRun=All`, { body: text })
    assert.equal(ignored.headers.warning, undefined)
  })

  it('a dry run creates no token', async () => {
    const accounts = '/api/v1/namespaces/orka-default/serviceaccounts'
    await kube.call('POST', accounts, { body: { metadata: { name: 'dry' } } })
    const body = { kind: 'TokenRequest', spec: { expirationSeconds: 600 } }
    const { status, body: answer } = await kube.call('POST', `${accounts}/dry/token?dryRun=All`, { body })
    assert.equal(status, 201)
    assert.equal(answer.status.token, '')
    assert.equal((await kube.call('POST', `${accounts}/none/token?dryRun=All`, { body })).status, 404)
    const refused = await kube.call('POST', `${accounts}/dry/token?dryRun=All`, { body, token: service.devToken })
    assert.equal(refused.status, 403)
  })

  it('malformed metadata is refused', async () => {
    const bad = [
      { finalizers: 'x' },
      { finalizers: ['a b'] },
      { finalizers: Array.from({ length: 33 }, (_, index) => `a/${index}`) },
      { ownerReferences: [{ name: 'x' }] },
      { ownerReferences: [owner, owner] },
      { labels: { 'a b': 'c' } },
      { labels: { a: 'x\n' } },
      { labels: { 'a"}': 'c' } },
      { annotations: { '': 'c' } },
    ]
    for (const metadata of bad) {
      const { status } = await create(config('bad', {}, metadata))
      assert.ok(status === 400 || status === 422, JSON.stringify(metadata))
    }
    assert.equal((await kube.call('GET', `${configs}/bad`)).status, 404)
  })
})

describe('finalizers after the deleter lost their role', () => {
  it('the object stays until a caller with the role deletes it', async () => {
    const url = `${configs}/orphan`
    await create(config('orphan', {}, { finalizers }), service.devToken)
    assert.equal((await kube.call('DELETE', url, { token: service.devToken })).status, 200)
    const removed = await service.call(
      'DELETE',
      '/api/v1/namespaces/svc-default/rolebindings/svc-dev/subjects/remove',
      {
        body: { users: ['dev@example.com'] },
      },
    )
    assert.equal(removed.status, 200)
    const refused = await patch(url, { metadata: { finalizers: null } })
    assert.equal(refused.status, 403)
    assert.deepEqual((await kube.call('GET', url)).body.metadata.finalizers, finalizers)
    assert.equal((await kube.call('DELETE', url)).status, 200)
    assert.equal((await patch(url, { metadata: { finalizers: null } })).status, 200)
    assert.equal((await kube.call('GET', url)).status, 404)
  })
})
