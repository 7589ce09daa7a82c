// Limits of what a namespace stores of each kind: through REST, the Kubernetes port and the 2.4.x API, and what stays
// possible in a full namespace.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { type Answer, type CallOptions, startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'

const inDefault = '/api/v1/namespaces/svc-default'
const configs = `${inDefault}/vmconfigs`
const kubernetesConfigs = '/apis/orka.macstadium.com/v1/namespaces/svc-default/virtualmachineconfigs'

let service: TestService
let kube: ReturnType<typeof startKubernetes>
let scheduler: AsyncDisposable

before(async () => {
  service = await startService({ settings: { legacy: { enabled: true } } })
  kube = startKubernetes(service)
  scheduler = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  await startNode(service)
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await kube[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const set = (body: object): Promise<Answer> => service.call('PUT', `${inDefault}/quota`, { body })
const stored = async (kind: string) =>
  (await service.call('GET', `${inDefault}/quota`)).body.stored.find((each: { kind: string }) => each.kind === kind)
const create = (name: string, options: CallOptions = {}): Promise<Answer> =>
  service.call('POST', configs, { token: service.devToken, body: { name, image: 'intel' }, ...options })
const annotate = (name: string, length: number): Promise<Answer> =>
  service.call('PUT', `${inDefault}/metadata/vmconfigs/${name}`, {
    token: service.devToken,
    body: { annotations: { note: 'x'.repeat(length) } },
  })

describe('a namespace that has as many records of a kind as its quota allows', () => {
  it('a full namespace refuses more records of the kind in every API, and says who can change that', async () => {
    const { status, body } = await set({ records: 2 })
    assert.equal(status, 200)
    assert.deepEqual([body.limits.records, body.limits.recordSize], [2, 32])
    for (const name of ['one', 'two']) assert.equal((await create(name)).status, 201)
    assert.equal((await stored('vmconfigs')).records, 2)
    const refused = await create('three')
    assert.equal(refused.status, 403, refused.text)
    assert.equal(refused.body.message, 'Forbidden: Quota of svc-default reached: 2 of 2 vmconfigs stored')
    assert.match(refused.body.hint, /svc3 quota set -n svc-default --records N/)
    const object = { metadata: { name: 'three' }, spec: { image: 'intel' } }
    for (const query of ['', '?dryRun=All']) {
      const answer = await kube.call('POST', kubernetesConfigs + query, { token: service.devToken, body: object })
      assert.deepEqual([answer.status, answer.body.reason], [403, 'Forbidden'], answer.text)
    }
    const vm = { orka_vm_name: 'three', orka_base_image: 'intel', orka_cpu_core: 1 }
    const legacy = await service.call('POST', '/resources/vm/create', { body: vm })
    assert.equal(legacy.status, 403, legacy.text)
    assert.equal((await stored('vmconfigs')).records, 2)
  })

  it('a full namespace still has its other kinds, changes, deletions, and what the service writes', async () => {
    const deployed = await service.call('POST', `${inDefault}/vms`, { body: { image: 'intel', cpu: 1, name: 'vm' } })
    assert.equal(deployed.status, 201, deployed.text)
    assert.equal((await stored('vms')).records, 1)
    await set({ records: 0, recordSize: 0 })
    assert.equal((await service.call('DELETE', `${inDefault}/vms/vm`)).status, 200)
    assert.equal((await service.call('DELETE', `${configs}/two`)).status, 200)
    assert.equal((await create('two')).status, 403)
    await set({ records: 20_000, recordSize: 32 })
    assert.equal(service.services.collections.quotas.list().length, 0)
    assert.equal((await create('two')).status, 201)
  })

  it('a namespace whose records have all the bytes that its quota allows refuses what grows, not what shrinks', async () => {
    await set({ recordSize: 0.25 })
    assert.equal((await annotate('one', 120_000)).status, 200)
    assert.equal((await annotate('two', 120_000)).status, 200)
    assert.equal((await create('four')).status, 201)
    const refused = await annotate('four', 120_000)
    assert.equal(refused.status, 403, refused.text)
    assert.match(
      refused.body.message,
      /Quota of svc-default reached: 235 KiB of 256 KiB of vmconfigs stored; 117 KiB requested$/,
    )
    assert.match(refused.body.hint, /--record-size MIB/)
    const patch = { metadata: { annotations: { note: 'x'.repeat(120_000) } } }
    const headers = { 'content-type': 'application/merge-patch+json' }
    const patched = await kube.call('PATCH', `${kubernetesConfigs}/four`, { body: patch, headers })
    assert.equal(patched.status, 403, patched.text)
    assert.equal((await annotate('one', 10)).status, 200)
    assert.equal((await annotate('four', 120_000)).status, 200)
  })
})
