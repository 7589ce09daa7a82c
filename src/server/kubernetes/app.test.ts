// The port for Kubernetes clients: discovery, objects, lists, watches and refusals, with the rules of the REST API.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type KubernetesRig, startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'

const group = '/apis/orka.macstadium.com/v1'
const inDefault = `${group}/namespaces/svc-default`
const vms = `${inDefault}/virtualmachineinstances`
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

let service: TestService
let scheduler: AsyncDisposable
let kube: KubernetesRig

beforeEach(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  kube = startKubernetes(service)
  await addImage(service, 'intel', 'amd64')
})
afterEach(async () => {
  await kube[Symbol.asyncDispose]()
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const vm = (name: string, more: object = {}, labels: object = {}) => ({
  apiVersion: 'orka.macstadium.com/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name, labels },
  spec: { image: 'intel', cpu: 2, ...more },
})
const config = (name: string) => ({
  apiVersion: 'orka.macstadium.com/v1',
  kind: 'VirtualMachineConfig',
  metadata: { name },
  spec: { image: 'intel', cpu: 4 },
})
const configs = `${inDefault}/virtualmachineconfigs`
const post = (path: string, body: unknown, token?: string) =>
  kube.call('POST', path, { body, ...(token !== undefined && { token }) })
const names = (body: { items: { metadata: { name: string } }[] }) => body.items.map(({ metadata }) => metadata.name)

describe('discovery for clients of Kubernetes', () => {
  const accept = (...versions: string[]) =>
    versions.map((v) => `application/json;g=apidiscovery.k8s.io;v=${v};as=APIGroupDiscoveryList`).join(',')

  it('the aggregated form has the version that the client prefers, also in its Content-Type', async () => {
    for (const [asked, version] of [
      [['v2', 'v2beta1'], 'v2'],
      [['v2beta1'], 'v2beta1'],
    ] as const) {
      const { headers, body } = await kube.call('GET', '/apis', { headers: { accept: accept(...asked) } })
      assert.match(String(headers['content-type']), new RegExp(`v="?${version}"?; ?as="?APIGroupDiscoveryList`))
      assert.equal(body.apiVersion, `apidiscovery.k8s.io/${version}`)
      const orka = body.items.find(
        (item: { metadata: { name: string } }) => item.metadata.name === 'orka.macstadium.com',
      )
      const [vmi] = orka.versions[0].resources
      assert.equal(vmi.resource, 'virtualmachineinstances')
      assert.deepEqual(vmi.shortNames, ['vm', 'vms'])
      assert.deepEqual(vmi.subresources[0].subresource, 'status')
    }
  })

  it('the plain form lists groups, versions and resources with their verbs', async () => {
    const { body: groups } = await kube.call('GET', '/apis')
    assert.equal(groups.kind, 'APIGroupList')
    const { body } = await kube.call('GET', group)
    const verbs = new Map(body.resources.map((each: { name: string; verbs: string[] }) => [each.name, each.verbs]))
    assert.ok((verbs.get('virtualmachineinstances') as string[]).includes('watch'))
    assert.deepEqual(verbs.get('remoteimages'), ['get', 'list'])
  })

  it('/version needs no token, everything else does, and an unknown path is a Status', async () => {
    assert.equal((await kube.call('GET', '/version/', { token: null })).status, 200)
    const { status, body } = await kube.call('GET', vms, { token: null })
    assert.equal(status, 401)
    assert.equal(body.reason, 'Unauthorized')
    const missing = await kube.call('GET', `${inDefault}/frobs`)
    assert.equal(missing.status, 404)
    assert.equal(missing.body.kind, 'Status')
  })

  it('OpenAPI v3 has each kind with a patch that takes fieldValidation, and v2 is empty protobuf', async () => {
    const { body: index } = await kube.call('GET', '/openapi/v3')
    const { serverRelativeURL: url } = index.paths['apis/orka.macstadium.com/v1']
    const { body } = await kube.call('GET', url)
    const { patch } = body.paths[`${group}/namespaces/{namespace}/virtualmachineinstances/{name}`]
    assert.equal(patch['x-kubernetes-group-version-kind'].kind, 'VirtualMachineInstance')
    assert.ok(patch.parameters.some(({ name }: { name: string }) => name === 'fieldValidation'))
    const schema = body.components.schemas['com.macstadium.orka.v1.VirtualMachineInstance']
    assert.equal(schema.properties.spec.properties.cpu.type, 'integer')
    const v2 = await kube.call('GET', '/openapi/v2')
    assert.equal(v2.status, 200)
    assert.equal(v2.text, '')
  })
})

describe('objects of the Kubernetes API', () => {
  it('a VM is created as in REST, runs, and is deleted with a deletionTimestamp', async () => {
    await startNode(service)
    const created = await post(vms, vm('demo', { reservedPorts: '9000:80' }, { team: 'ios' }))
    assert.equal(created.status, 201)
    assert.equal(created.body.status.phase, 'Pending')
    assert.equal(created.body.metadata.labels.team, 'ios')
    const watching = await kube.watch(`${vms}?watch=true&fieldSelector=metadata.name=demo`)
    while (watching.events.at(-1)?.object.status.phase !== 'Running') await watching.until(watching.events.length + 1)
    const running = watching.events.at(-1).object
    assert.equal(running.status.sshPort, 8822)
    assert.equal(running.status.ip, '127.0.0.1')
    assert.equal(running.spec.reservedPorts, '9000:80')
    assert.equal(running.status.conditions[0].status, 'True')
    const rest = await service.call('GET', '/api/v1/namespaces/svc-default/vms/demo')
    assert.equal(rest.body.resourceVersion, (await kube.call('GET', `${vms}/demo`)).body.metadata.resourceVersion)
    const removed = await kube.call('DELETE', `${vms}/demo`)
    assert.equal(removed.status, 200)
    assert.equal(removed.body.kind, 'VirtualMachineInstance')
    assert.match(removed.body.metadata.deletionTimestamp, /^20/)
    const after = await kube.watch(`${vms}?watch=1&resourceVersion=${removed.body.metadata.resourceVersion}`)
    while (after.events.at(-1)?.type !== 'DELETED') await after.until(after.events.length + 1)
    const gone = await kube.call('GET', `${vms}/demo`)
    assert.equal(gone.body.message, 'virtualmachineinstances.orka.macstadium.com "demo" not found')
    const events = await service.call('GET', '/api/v1/namespaces/svc-default/events')
    const reasons = events.body.items.map(({ reason }: { reason: string }) => reason)
    assert.ok(reasons.includes('DeployVm') && reasons.includes('DeleteVm'))
  })

  it('a Node has all fields of nodeInfo, which typed clients require', async () => {
    await startNode(service)
    const { items } = (await kube.call('GET', '/api/v1/nodes')).body
    const { nodeInfo } = items[0].status
    const fields = ['architecture', 'bootID', 'containerRuntimeVersion', 'kernelVersion', 'kubeProxyVersion', 'kubeletVersion', 'machineID', 'operatingSystem', 'osImage', 'systemUUID'] // biome-ignore format: a list
    assert.deepEqual(Object.keys(nodeInfo).toSorted(), fields)
    assert.ok(Object.values(nodeInfo).every((value) => typeof value === 'string'))
  })

  it('generateName is followed by five characters without another dash', async () => {
    const { body } = await post(configs, { ...config(''), metadata: { generateName: 'ci-' } })
    assert.match(body.metadata.name, /^ci-[a-z0-9]{5}$/)
    const { status, body: refusal } = await post(configs, { ...config(''), metadata: {} })
    assert.equal(status, 422)
    assert.equal(refusal.details.causes[0].field, 'metadata.name')
  })

  it('a dry run changes nothing, and gets the refusal of the request', async () => {
    const dry = await post(`${configs}?dryRun=All`, config('one'))
    assert.equal(dry.status, 201)
    assert.equal(dry.body.spec.cpu, 4)
    assert.equal(dry.body.metadata.resourceVersion, undefined)
    assert.equal((await kube.call('GET', `${configs}/one`)).status, 404)
    await post(configs, config('one'))
    assert.equal((await post(`${configs}?dryRun=All`, config('one'))).status, 409)
    assert.equal((await kube.call('DELETE', `${configs}/one?dryRun=All`)).status, 200)
    assert.equal((await kube.call('GET', `${configs}/one`)).status, 200)
    const events = (await service.call('GET', '/api/v1/namespaces/svc-default/events')).body.items
    assert.equal(events.length, 1)
  })

  it('an unknown field is refused with Strict, gets a warning by default, and is accepted with Ignore', async () => {
    const odd = { ...config('odd'), spec: { image: 'intel', cpus: 4 } }
    const strict = await post(`${configs}?fieldValidation=Strict`, odd)
    assert.equal(strict.status, 400)
    assert.match(strict.body.message, /unknown field "spec.cpus"/)
    const warned = await post(`${configs}?dryRun=All`, odd)
    assert.deepEqual([warned.headers.warning].flat(), ['299 - "unknown field \\"spec.cpus\\""'])
    const ignored = await post(`${configs}?dryRun=All&fieldValidation=Ignore`, odd)
    assert.equal(ignored.headers.warning, undefined)
  })

  it('refusals name the path of the field in the object', async () => {
    const type = await post(configs, { ...config('x'), spec: { image: 'intel', cpu: 'four' } })
    assert.equal(type.status, 422)
    assert.equal(type.body.details.causes[0].field, 'spec.cpu')
    const missing = await post(vms, vm('x', { image: 'nope' }))
    assert.equal(missing.status, 422)
    assert.match(missing.body.message, /Image nope not found/)
    const label = await post(vms, vm('x', {}, { team: 'a,b in (c)' }))
    assert.equal(label.body.details.causes[0].field, 'metadata.labels')
    const wrong = await post(vms, config('x'))
    assert.equal(wrong.status, 400)
    const elsewhere = await post(vms, { ...vm('x'), metadata: { name: 'x', namespace: 'svc-other' } })
    assert.equal(elsewhere.status, 400)
  })

  it('a deletion checks its preconditions, and a collection is deleted by its selector', async () => {
    const { body } = await post(configs, config('one'))
    await post(configs, config('two'))
    const uid = await kube.call('DELETE', `${configs}/one`, { body: { preconditions: { uid: 'another' } } })
    assert.equal(uid.status, 409)
    const version = await kube.call('DELETE', `${configs}/one`, { body: { preconditions: { resourceVersion: '1' } } })
    assert.equal(version.status, 409)
    const { uid: own, resourceVersion } = body.metadata
    const preconditions = { uid: own, resourceVersion }
    assert.equal(
      (await kube.call('DELETE', `${configs}/one`, { body: { kind: 'DeleteOptions', preconditions } })).status,
      200,
    )
    await post(configs, config('three'))
    const all = await kube.call('DELETE', `${configs}?fieldSelector=metadata.name=three`)
    assert.deepEqual(names(all.body), ['three'])
    assert.deepEqual(names((await kube.call('GET', configs)).body), ['two'])
  })

  it('an Image is copied or generated by its sourceType; other types are refused', async () => {
    const image = (name: string, spec: object) => ({
      apiVersion: 'orka.macstadium.com/v1',
      kind: 'Image',
      metadata: { name, annotations: { 'orka.macstadium.com/description': 'Mine' } },
      spec,
    })
    const made = await post(`${inDefault}/images`, image('empty', { sourceType: 'generated', size: '1G' }))
    assert.equal(made.status, 201)
    assert.equal(made.body.metadata.annotations['orka.macstadium.com/description'], 'Mine')
    const refused = await post(`${inDefault}/images`, image('file', { sourceType: 'userUpload' }))
    assert.equal(refused.status, 422)
    assert.equal(refused.body.details.causes[0].field, 'spec.sourceType')
    assert.equal((await kube.call('DELETE', `${inDefault}/images/empty`)).status, 200)
    assert.equal((await kube.call('GET', `${inDefault}/images/empty`)).status, 404)
  })
})

describe('lists of the Kubernetes API', () => {
  it('pages have the version of the first page and the number of remaining items', async () => {
    for (const name of ['a', 'b', 'c']) await post(configs, config(name))
    const first = (await kube.call('GET', `${configs}?limit=2`)).body
    assert.deepEqual(names(first), ['a', 'b'])
    assert.equal(first.metadata.remainingItemCount, 1)
    await post(configs, config('d'))
    const second = (await kube.call('GET', `${configs}?limit=2&continue=${first.metadata.continue}`)).body
    assert.deepEqual(names(second), ['c', 'd'])
    assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion)
    assert.equal(second.metadata.continue, undefined)
    assert.equal((await kube.call('GET', `${configs}?continue=bad`)).status, 400)
    assert.equal((await kube.call('GET', `${configs}?limit=x`)).status, 400)
  })

  it('a Table has the columns of the original, and rows with the metadata of their objects', async () => {
    await post(configs, config('a'))
    const { body } = await kube.call('GET', configs, { headers: { accept: table } })
    assert.equal(body.kind, 'Table')
    const columns = body.columnDefinitions.map(({ name, priority }: { name: string; priority: number }) => [
      name,
      priority,
    ])
    assert.deepEqual(columns.slice(0, 5), [['Name', 0], ['Image', 0], ['CPU', 0], ['Memory', 0], ['ISO', 1]]) // biome-ignore format: a list
    assert.deepEqual(body.rows[0].cells.slice(0, 4), ['a', 'intel', 4, null])
    assert.equal(body.rows[0].object.kind, 'PartialObjectMetadata')
    const events = (await kube.call('GET', '/api/v1/namespaces/svc-default/events', { headers: { accept: table } }))
      .body
    const shown = events.columnDefinitions.filter(({ priority }: { priority: number }) => priority === 0)
    assert.deepEqual(shown.map(({ name }: { name: string }) => name), ['Last Seen', 'Type', 'Reason', 'Object', 'Message']) // biome-ignore format: a list
    assert.equal(events.columnDefinitions.at(-1).format, 'name')
    assert.equal(events.rows[0].cells.at(-1), events.rows[0].object.metadata.name)
  })

  it('a namespace is spelled like in the path, or as it was created in lists of all namespaces', async () => {
    const orka = `${group}/namespaces/orka-default/virtualmachineconfigs`
    const created = await post(orka, { ...config('a'), metadata: { name: 'a', namespace: 'orka-default' } })
    assert.equal(created.body.metadata.namespace, 'orka-default')
    assert.equal((await kube.call('GET', orka)).body.items[0].metadata.namespace, 'orka-default')
    assert.equal((await kube.call('GET', configs)).body.items[0].metadata.namespace, 'svc-default')
    const all = await kube.call('GET', `${group}/virtualmachineconfigs`)
    assert.equal(all.body.items[0].metadata.namespace, 'svc-default')
    const selected = await kube.call('GET', `${orka}?fieldSelector=metadata.namespace%3Dorka-default`)
    assert.deepEqual(names(selected.body), ['a'])
    const missing = await kube.call('GET', `${group}/namespaces/orka-none/images`)
    assert.match(missing.body.message, /orka-none not found/)
  })

  it('a list of all namespaces has only those in which the caller has a role', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    await post(configs, config('a'))
    await post(`${group}/namespaces/svc-ios/virtualmachineconfigs`, config('b'))
    const all = `${group}/virtualmachineconfigs`
    assert.deepEqual(names((await kube.call('GET', all)).body), ['a', 'b'])
    assert.deepEqual(names((await kube.call('GET', all, { token: service.devToken })).body), ['a'])
    const images = (await kube.call('GET', `${group}/images`, { token: service.devToken })).body
    assert.deepEqual(images.items.map((item: { metadata: object }) => item.metadata).length, 1)
  })
})

describe('changes of others in all namespaces', () => {
  const all = `${group}/virtualmachineconfigs`

  it('events of all namespaces are those that the caller may see in each, with their namespace', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    await post(`${group}/namespaces/svc-ios/virtualmachineconfigs`, config('hidden'))
    await post(configs, config('own'))
    const seen = async (path: string, token: string) => {
      const { items } = (await kube.call('GET', path, { token })).body
      return items.map((item: { metadata: { namespace: string }; involvedObject: { name: string } }) => [
        item.metadata.namespace,
        item.involvedObject.name,
      ])
    }
    // Only administrators see events of operations for administrators, such as createNamespace.
    assert.deepEqual(await seen('/api/v1/events', service.devToken), [['svc-default', 'own']])
    const everything = await seen('/api/v1/events', service.adminToken)
    assert.deepEqual(everything.toSorted(), [
      ['svc-default', 'own'],
      ['svc-default', 'svc-ios'],
      ['svc-ios', 'hidden'],
    ])
    assert.deepEqual(await seen('/api/v1/namespaces/svc-ios/events', service.adminToken), [['svc-ios', 'hidden']])
  })

  it('a watch of all namespaces does not show a namespace that is created later, in which the caller has no role', async () => {
    await post(configs, config('own'))
    const watching = await kube.watch(`${all}?watch=true`, { token: service.devToken })
    await watching.until(1)
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    await post(`${group}/namespaces/svc-ios/virtualmachineconfigs`, config('hidden'))
    await watching.ended
    assert.deepEqual(
      watching.events.map(({ object }) => object.metadata.name),
      ['own'],
    )
  })
})

describe('watches of the Kubernetes API', () => {
  it('without a version, a watch starts with the present objects; bookmarks are optional', async () => {
    await post(configs, config('a'))
    const plain = await kube.watch(`${configs}?watch=true`)
    await plain.until(1)
    await post(configs, config('b'))
    await plain.until(2)
    assert.deepEqual(plain.events.map(({ type, object }) => [type, object.metadata.name]), [['ADDED', 'a'], ['ADDED', 'b']]) // biome-ignore format: a list
    const marked = await kube.watch(`${configs}?watch=true&allowWatchBookmarks=true`)
    await marked.until(3)
    assert.equal(marked.events[2].type, 'BOOKMARK')
    assert.equal(marked.events[2].object.kind, 'VirtualMachineConfig')
    assert.match(marked.events[2].object.metadata.resourceVersion, /^\d+$/)
  })

  it('with sendInitialEvents, an annotated bookmark follows the present objects', async () => {
    await post(configs, config('a'))
    const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const watching = await kube.watch(`${configs}?${query}`)
    await watching.until(2)
    assert.equal(watching.events[0].type, 'ADDED')
    assert.equal(watching.events[1].object.metadata.annotations['k8s.io/initial-events-end'], 'true')
    const bad = await kube.call('GET', `${configs}?watch=true&sendInitialEvents=true`)
    assert.equal(bad.status, 422)
  })

  it('headers come before the first event, and timeoutSeconds ends the watch cleanly', async () => {
    const { resourceVersion } = (await kube.call('GET', configs)).body.metadata
    const watching = await kube.watch(`${configs}?watch=true&resourceVersion=${resourceVersion}&timeoutSeconds=1`)
    assert.equal(watching.status, 200)
    await watching.ended
    assert.deepEqual(watching.events, [])
  })

  it('timeoutSeconds beyond the maximum of a timer leaves the watch open', async () => {
    for (const [index, seconds] of [3_000_000, 5_000_000].entries()) {
      const watching = await kube.watch(`${configs}?watch=true&timeoutSeconds=${seconds}`)
      assert.equal(watching.status, 200)
      await post(configs, config(`late-${index}`))
      await watching.until(index + 1)
      assert.equal(watching.events.length, index + 1)
    }
  })

  it('an object that leaves the selection is DELETED, and only the first Table has columns', async () => {
    await post(configs, config('a'))
    const watching = await kube.watch(`${configs}?watch=true&fieldSelector=metadata.name=a`, { accept: table })
    await watching.until(1)
    await post(configs, config('b'))
    await kube.call('DELETE', `${configs}/a`)
    await watching.until(2)
    assert.deepEqual(
      watching.events.map(({ type }) => type),
      ['ADDED', 'DELETED'],
    )
    assert.ok(watching.events[0].object.columnDefinitions.length > 3)
    assert.deepEqual(watching.events[1].object.columnDefinitions, [])
  })

  it('an unknown later version is 410', async () => {
    const { status, body } = await kube.call('GET', `${configs}?watch=true&resourceVersion=999999`)
    assert.equal(status, 410)
    assert.equal(body.reason, 'Expired')
  })
})

describe('reviews and bodies of the Kubernetes API', () => {
  const access = (resource: string, verb: string, namespace = 'svc-default') => ({
    spec: { resourceAttributes: { group: 'orka.macstadium.com', resource, verb, namespace } },
  })
  const mayI = async (token: string, ...asked: Parameters<typeof access>) =>
    (await post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', access(...asked), token)).body.status.allowed

  it('can-i answers by the role of the caller', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    assert.equal(await mayI(service.adminToken, 'orkanodes', 'delete'), true)
    assert.equal(await mayI(service.devToken, 'orkanodes', 'delete'), false)
    assert.equal(await mayI(service.devToken, 'virtualmachineinstances', 'create'), true)
    assert.equal(await mayI(service.devToken, 'virtualmachineinstances', 'create', 'orka-ios'), false)
    const rules = await post(
      '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
      { spec: { namespace: 'orka-ios' } },
      service.devToken,
    )
    const others = rules.body.status.resourceRules.filter(
      (rule: { resources: string[] }) => rule.resources[0] !== 'namespaces',
    )
    assert.deepEqual(others, [])
    const who = await post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, service.devToken)
    assert.equal(who.body.status.userInfo.username, 'dev@example.com')
  })

  it('can-i answers service accounts that are administrators, who may not do all', async () => {
    const account = '/api/v1/namespaces/svc-default/serviceaccounts/terraform'
    await service.call('POST', account)
    const { token } = (await service.call('POST', `${account}/token`)).body
    assert.equal(await mayI(token, 'orkanodes', 'delete', 'svc-ios'), false)
    await service.call('PUT', `${account}/role`, { body: { role: 'administrator' } })
    assert.equal(await mayI(token, 'orkanodes', 'delete', 'svc-ios'), true)
    assert.equal(await mayI(token, '*', '*'), false)
    assert.equal(await mayI(service.adminToken, '*', '*'), true)
    const who = await post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, token)
    assert.ok(who.body.status.userInfo.groups.includes('svc3:administrators'))
    const nodes = await kube.call('GET', '/apis/orka.macstadium.com/v1/orkanodes', { token })
    assert.equal(nodes.status, 200)
    await service.call('PUT', `${account}/role`, { body: { role: 'developer' } })
    assert.equal(await mayI(token, 'orkanodes', 'delete', 'svc-ios'), false)
  })

  it('deeply nested JSON, an array, other methods and unknown subresources are refused', async () => {
    const deep = `{"spec":${'['.repeat(5_000)}${']'.repeat(5_000)}}`
    assert.equal((await post(vms, deep)).status, 400)
    assert.equal((await post(vms, [])).status, 400)
    assert.equal((await post(vms, '{"metadata":{"__proto__":1}}')).status, 400)
    assert.equal((await kube.call('PUT', vms, { body: vm('x') })).status, 405)
    for (const shared of ['/api/v1/namespaces', '/api/v1/nodes', `${inDefault}/images`])
      assert.equal((await kube.call('DELETE', shared)).status, 405)
    assert.equal((await kube.call('GET', `${vms}/x/exec`)).status, 404)
    assert.equal((await kube.call('GET', `${inDefault}/remoteimages?watch=true`)).status, 405)
  })
})
