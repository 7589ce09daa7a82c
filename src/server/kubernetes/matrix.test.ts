// Permissions of every verb of every kind: a caller who may not call the operation may not use the verb.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type KubernetesRig, startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { startNode } from '../../../test/support/stand-ins/node.ts'
import { mayCall } from '../../rules/permissions.ts'
import { kinds } from './kinds/index.ts'
import { apiVersionOf, type Kind, verbsOf } from './kinds/kind.ts'
import { operationsOfVerb } from './reviews.ts'

let service: TestService
let kube: KubernetesRig

before(async () => {
  service = await startService()
  kube = startKubernetes(service)
  await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-closed' } })
  await startNode(service)
})
after(async () => {
  await kube[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const requests: Readonly<Record<string, readonly [method: string, isOne: boolean]>> = {
  get: ['GET', true],
  list: ['GET', false],
  watch: ['GET', false],
  create: ['POST', false],
  update: ['PUT', true],
  patch: ['PATCH', true],
  delete: ['DELETE', true],
  deletecollection: ['DELETE', false],
}

function pathOf(kind: Kind, namespace: string, isOne: boolean): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  const place = kind.scope === 'cluster' ? '' : `/namespaces/${namespace}`
  return `${root}${place}/${kind.plural}${isOne ? '/some' : ''}`
}

function testNamespaced(kind: Kind, verb: string): void {
  it(`${verb} of ${kind.plural} needs the permission of the REST operation`, async () => {
    const [method, isOne] = requests[verb] ?? ['GET', false]
    const body = {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: { name: 'some', resourceVersion: '1' },
      spec: { sourceType: 'local', source: 'x', tags: [], namespace: 'svc-default' },
    }
    const options = method === 'POST' || method === 'PUT' ? { body } : {}
    const query = verb === 'watch' ? '?watch=true&timeoutSeconds=1' : ''
    for (const namespace of ['svc-closed', 'svc-default']) {
      const role = namespace === 'svc-default' ? 'dev' : 'none'
      const isAllowed = operationsOfVerb(kind, verb).every(({ allow }) => mayCall(role, allow))
      const url = `${pathOf(kind, namespace, isOne)}${query}`
      const { status } = await kube.call(method, url, { ...options, token: service.devToken })
      // A missing record is not found before its deletion is refused. End-to-end tests delete existing ones.
      if (isAllowed) assert.notEqual(status, 403, `${url} as ${role}`)
      else if (isOne && role === 'dev') assert.ok([403, 404].includes(status), `${url} as ${role}: ${status}`)
      else if (verb !== 'deletecollection' || role === 'none') assert.equal(status, 403, `${url} as ${role}`)
    }
  })
}

/** Names of existing records, so that a refusal is not hidden by a NotFound. */
const existing: Readonly<Record<string, string>> = { namespaces: 'svc-default', nodes: 'node-1' }

function testClusterWide(kind: Kind, verb: string): void {
  it(`${verb} of ${kind.plural}, which have no namespace, needs the permission of the REST operation`, async () => {
    const [method, isOne] = requests[verb] ?? ['GET', false]
    const name = existing[kind.plural] ?? assert.fail(`no ${kind.kind} is there to try`)
    const look = async () => (await kube.call('GET', `/api/v1/${kind.plural}/${name}`)).body
    const before = await look()
    const changed = { metadata: { labels: { ...before.metadata.labels, a: 'b' } }, spec: { unschedulable: true } }
    const written = {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: verb === 'create' ? { name: 'svc-new' } : { ...before.metadata, ...changed.metadata },
      spec: changed.spec,
    }
    const bodies: Readonly<Record<string, object>> = { POST: written, PUT: written, PATCH: changed }
    const body = bodies[method]
    const { status } = await kube.call(
      method,
      `/api/v1/${kind.plural}${isOne ? `/${name}` : ''}${verb === 'watch' ? '?watch=true&timeoutSeconds=1' : ''}`,
      {
        token: service.devToken,
        headers: verb === 'patch' ? { 'content-type': 'application/merge-patch+json' } : {},
        ...(body && { body }),
      },
    )
    const isAllowed = operationsOfVerb(kind, verb).every(({ allow }) => mayCall('dev', allow))
    assert.equal(status === 403, !isAllowed, `${verb} ${name}: ${status}`)
    if (!isAllowed) assert.equal((await look()).metadata.resourceVersion, before.metadata.resourceVersion)
  })
}

function testAll(isTested: (verb: string) => boolean): void {
  for (const kind of kinds)
    for (const verb of verbsOf(kind).filter(isTested))
      if (kind.scope === 'cluster') testClusterWide(kind, verb)
      else testNamespaced(kind, verb)
}

describe('permissions of the Kubernetes API', () => {
  testAll((verb) => verb !== 'watch')
  // Concurrently, because each takes a second.
  describe('permissions of watches', { concurrency: true }, () => testAll((verb) => verb === 'watch'))
})
