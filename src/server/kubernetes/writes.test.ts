// Changes of objects through the Kubernetes API: patches, replacement, labels and annotations, kinds of Kubernetes itself.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type KubernetesRig, startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode } from '../../../test/support/stand-ins/node.ts'

const inDefault = '/apis/orka.macstadium.com/v1/namespaces/orka-default'
const configs = `${inDefault}/virtualmachineconfigs`
const vms = `${inDefault}/virtualmachineinstances`
const merge = { 'content-type': 'application/merge-patch+json' }
const jsonPatch = { 'content-type': 'application/json-patch+json' }
const strategic = { 'content-type': 'application/strategic-merge-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }

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
  spec: { image: 'intel', cpu: 4, ...spec },
})
const patch = (url: string, body: unknown, headers: Record<string, string>, token?: string) =>
  kube.call('PATCH', url, { body, headers, ...(token !== undefined && { token }) })

describe('changing objects of the Kubernetes API', () => {
  it('each type of patch changes the spec, and a patch without a difference writes nothing', async () => {
    await kube.call('POST', configs, { body: config('a') })
    const url = `${configs}/a`
    assert.equal((await patch(url, { spec: { cpu: 6 } }, merge)).body.spec.cpu, 6)
    const steps = [
      { op: 'test', path: '/spec/cpu', value: 6 },
      { op: 'replace', path: '/spec/cpu', value: 8 },
    ]
    const changed = await patch(url, steps, jsonPatch)
    assert.equal(changed.body.spec.cpu, 8)
    const same = await patch(url, { spec: { cpu: 8 } }, merge)
    assert.equal(same.body.metadata.resourceVersion, changed.body.metadata.resourceVersion)
    const forced = `${url}?fieldManager=ci&force=true`
    assert.equal((await patch(forced, config('a', { cpu: 10 }), apply)).body.spec.cpu, 10)
    assert.equal((await patch(`${configs}/new?fieldManager=ci`, config('new'), apply)).status, 201)
    assert.equal((await patch(url, config('a'), apply)).status, 422)
    assert.equal((await patch(url, { spec: {} }, strategic)).status, 415)
    assert.equal((await patch(url, steps, jsonPatch)).status, 422)
    assert.equal((await patch(url, { metadata: { name: 'b' } }, merge)).status, 400)
    const rest = await service.call('GET', '/api/v1/namespaces/svc-default/vmconfigs/a')
    assert.equal(rest.body.cpu, 10)
  })

  it('replacing an object needs its version, and a stale version is a conflict', async () => {
    const { body } = await kube.call('POST', configs, { body: config('b') })
    assert.equal((await kube.call('PUT', `${configs}/b`, { body: config('b', { cpu: 5 }) })).status, 422)
    const { resourceVersion } = body.metadata
    const put = await kube.call('PUT', `${configs}/b`, { body: config('b', { cpu: 5 }, { resourceVersion }) })
    assert.equal(put.body.spec.cpu, 5)
    const stale = await kube.call('PUT', `${configs}/b`, { body: config('b', { cpu: 6 }, { resourceVersion }) })
    assert.equal(stale.status, 409)
    assert.match(stale.body.message, /has been modified/)
    const dry = await kube.call('PATCH', `${configs}/b?dryRun=All`, { body: { spec: { cpu: 7 } }, headers: merge })
    assert.equal(dry.body.spec.cpu, 7)
    assert.equal((await kube.call('GET', `${configs}/b`)).body.spec.cpu, 5)
  })

  it('labels and annotations are stored; a VM has the labels of REST, and its spec cannot change', async () => {
    const object = {
      apiVersion: 'orka.macstadium.com/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'demo', labels: { team: 'ios' }, annotations: { 'example.com/ticket': '42' } },
      spec: { image: 'intel', cpu: 2 },
    }
    const created = await kube.call('POST', vms, { body: object })
    assert.equal(created.body.metadata.annotations['example.com/ticket'], '42')
    const labelled = await patch(`${vms}/demo`, { metadata: { labels: { stage: 'test', team: null } } }, merge)
    assert.deepEqual(labelled.body.metadata.labels, { 'kubernetes.io/arch': 'amd64', stage: 'test' })
    const rest = await service.call('GET', '/api/v1/namespaces/svc-default/vms?labelSelector=stage%3Dtest')
    assert.deepEqual(
      rest.body.items.map(({ name }: { name: string }) => name),
      ['demo'],
    )
    assert.equal((await kube.call('GET', `${vms}/demo`)).body.metadata.annotations['example.com/ticket'], '42')
    const spec = await patch(`${vms}/demo`, { spec: { cpu: 4 } }, merge)
    assert.equal(spec.status, 422)
    const named = await kube.call('POST', configs, { body: config('c', {}, { labels: { team: 'ios' } }) })
    assert.equal(named.body.metadata.labels.team, 'ios')
    const selected = await kube.call('GET', `${configs}?labelSelector=team%3Dios`)
    assert.deepEqual(
      selected.body.items.map((item: { metadata: { name: string } }) => item.metadata.name),
      ['c'],
    )
  })

  it('only administrators change tags of a node and cordon it', async () => {
    const node = `${inDefault}/orkanodes/node-1`
    assert.equal((await patch(node, { spec: { tags: ['ios'] } }, merge, service.devToken)).status, 403)
    assert.deepEqual((await patch(node, { spec: { tags: ['ios', 'm2'] } }, merge)).body.spec.tags, ['ios', 'm2'])
    assert.deepEqual((await patch(node, { spec: { tags: ['m2'] } }, merge)).body.spec.tags, ['m2'])
    assert.equal((await patch(node, { metadata: { labels: { a: 'b' } } }, merge, service.devToken)).status, 403)
    const core = '/api/v1/nodes/node-1'
    assert.equal((await patch(core, { spec: { unschedulable: true } }, strategic, service.devToken)).status, 403)
    assert.equal((await patch(core, { spec: { unschedulable: true } }, strategic)).body.spec.unschedulable, true)
    const nodes = await service.call('GET', '/api/v1/namespaces/svc-default/nodes')
    assert.equal(nodes.body.items[0].cordoned, true)
    assert.equal((await patch(core, { spec: { unschedulable: null } }, strategic)).body.spec.unschedulable, undefined)
  })

  it('the description of an image is its annotation', async () => {
    const annotations = { 'orka.macstadium.com/description': 'For releases' }
    const { body } = await patch(`${inDefault}/images/intel`, { metadata: { annotations } }, merge)
    assert.equal(body.metadata.annotations['orka.macstadium.com/description'], 'For releases')
    const rest = await service.call('GET', '/api/v1/namespaces/svc-default/images/intel')
    assert.equal(rest.body.description, 'For releases')
    assert.equal((await patch(`${inDefault}/images/intel`, { spec: { size: '1T' } }, merge)).status, 422)
  })

  it('a namespace is created, shown in both spellings, and deleted', async () => {
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'orka-ios' } }
    assert.equal((await kube.call('POST', '/api/v1/namespaces', { body: object })).status, 201)
    for (const name of ['orka-ios', 'svc-ios'])
      assert.equal((await kube.call('GET', `/api/v1/namespaces/${name}`)).body.metadata.name, name)
    assert.equal((await kube.call('GET', '/api/v1/namespaces/orka-ios', { token: service.devToken })).status, 404)
    assert.equal((await kube.call('DELETE', '/api/v1/namespaces/orka-ios', { token: service.devToken })).status, 404)
    assert.equal((await kube.call('DELETE', '/api/v1/namespaces/orka-ios')).status, 200)
    assert.equal((await kube.call('GET', '/api/v1/namespaces/svc-ios')).status, 404)
  })

  it('a service account gets a token that works, and events are about objects', async () => {
    const accounts = '/api/v1/namespaces/orka-default/serviceaccounts'
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'bot' } }
    assert.equal((await kube.call('POST', accounts, { body: account, token: service.devToken })).status, 403)
    assert.equal((await kube.call('POST', accounts, { body: account })).status, 201)
    const asked = { kind: 'TokenRequest', spec: { expirationSeconds: 600 } }
    const { body } = await kube.call('POST', `${accounts}/bot/token`, { body: asked })
    assert.equal((await kube.call('GET', vms, { token: body.status.token })).status, 200)
    const selector = 'involvedObject.kind%3DServiceAccount,involvedObject.name%3Dbot,involvedObject.uid%3Dx'
    const events = await kube.call('GET', `/api/v1/namespaces/orka-default/events?fieldSelector=${selector}`)
    assert.deepEqual(events.body.items.map(({ reason }: { reason: string }) => reason).toSorted(), [
      'CreateServiceAccount',
      'CreateServiceAccountToken',
    ])
  })

  it('subjects of the role binding are added and removed', async () => {
    const bindings = '/apis/rbac.authorization.k8s.io/v1/namespaces/orka-default/rolebindings'
    const subject = (name: string) => ({ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name })
    const object = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'orka-dev' },
      roleRef: { kind: 'ClusterRole', name: 'orka-dev' },
      subjects: [subject('ana@example.com')],
    }
    await kube.call('POST', bindings, { body: object })
    const { body } = await kube.call('GET', bindings)
    assert.deepEqual(
      body.items[0].subjects.map(({ name }: { name: string }) => name),
      ['ana@example.com'],
    )
    const { name } = body.items[0].metadata
    const changed = await patch(`${bindings}/${name}`, { subjects: [subject('bo@example.com')] }, merge)
    assert.deepEqual(
      changed.body.subjects.map(({ name: each }: { name: string }) => each),
      ['bo@example.com'],
    )
  })

  it('patches with too large a result are refused', async () => {
    await kube.call('POST', configs, { body: config('bomb') })
    const url = `${configs}/bomb`
    const copies = Array.from({ length: 40 }, (_, index) => ({
      op: 'copy',
      from: '/metadata',
      path: `/metadata/x${index}`,
    }))
    assert.equal((await patch(url, copies, jsonPatch)).status, 400)
    const fields = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`a${index}`, 1]))
    const costly = ['/a', '/b', '/c'].map((path) => ({ op: 'copy', from: '/x', path }))
    const { status, body } = await patch(url, [{ op: 'add', path: '/x', value: fields }, ...costly], jsonPatch)
    assert.deepEqual([status, body.message], [400, 'The patch cannot be applied: it copies more than 256 KiB'])
    const many = Array.from({ length: 1_001 }, () => ({ op: 'test', path: '/kind', value: 'VirtualMachineConfig' }))
    assert.equal((await patch(url, many, jsonPatch)).status, 400)
    for (const path of ['', 'spec', '/__proto__/x', '/spec/none/x'])
      assert.ok([400, 422].includes((await patch(url, [{ op: 'add', path, value: 1 }], jsonPatch)).status), path)
    assert.equal((await patch(url, [], merge)).status, 400)
    const huge = { metadata: { annotations: { 'example.com/x': 'a'.repeat(200_000) } } }
    assert.equal((await patch(url, huge, merge)).status, 422)
  })
})
