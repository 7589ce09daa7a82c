// A matrix made from the table of kinds: whoever the REST API refuses an operation is refused the verb that stands for it.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type KubernetesRig, startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { mayCall } from '../../rules/permissions.ts'
import { kinds } from './kinds/index.ts'
import { apiVersionOf, type Kind, verbsOf } from './kinds/kind.ts'
import { operationsOf } from './reviews.ts'

let service: TestService
let kube: KubernetesRig

before(async () => {
  service = await startService()
  kube = startKubernetes(service)
  await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-closed' } })
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

describe('permissions of the Kubernetes wire', () => {
  for (const kind of kinds.filter(({ scope }) => scope !== 'cluster'))
    for (const verb of verbsOf(kind))
      it(`${verb} of ${kind.plural} is refused to whom REST refuses it`, async () => {
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
          const isAllowed = operationsOf(kind, verb).every(({ allow }) => mayCall(role, allow))
          const url = `${pathOf(kind, namespace, isOne)}${query}`
          const { status } = await kube.call(method, url, { ...options, token: service.devToken })
          // A record that is not there is not found before its deletion is refused; what exists is in e2e.
          if (isAllowed) assert.notEqual(status, 403, `${url} as ${role}`)
          else if (isOne && role === 'dev') assert.ok([403, 404].includes(status), `${url} as ${role}: ${status}`)
          else if (verb !== 'deletecollection' || role === 'none') assert.equal(status, 403, `${url} as ${role}`)
        }
      })
})
