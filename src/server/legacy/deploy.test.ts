// Deployments of 2.4.x clients that are refused or aborted leave no VM behind.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

let service: TestService
let scheduler: AsyncDisposable
/** The node ignores VMs of this name. */
const stuck = 'stuck'

before(async () => {
  service = await startService({ settings: { legacy: { enabled: true } } })
  scheduler = startScheduler(service)
  await addImage(service, 'ventura', 'amd64')
  await addImage(service, 'sonoma', 'arm64')
  const react = ({ name, power, generation }: { name: string; power: string; generation: number }) =>
    power === 'deleted' ? { generation, power: 'removed' as const } : name === stuck ? undefined : { generation }
  await startNode(service, { name: 'macpro-1', report: { cpu: 12 }, react })
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const vms = (): string[] => service.services.collections.vms.list('svc-default').map(({ value }) => value.name)
async function create(name: string, fields: object = {}): Promise<void> {
  const body = { orka_vm_name: name, orka_base_image: 'ventura', orka_cpu_core: 2, ...fields }
  const { status, text } = await service.call('POST', '/resources/vm/create', { body })
  assert.equal(status, 201, text)
}
async function refused(status: number, words: RegExp, body: { orka_vm_name: string; [field: string]: unknown }) {
  const had = vms()
  const answer = await service.call('POST', '/resources/vm/deploy', { body })
  assert.equal(answer.status, status, answer.text)
  assert.match(answer.body.errors[0].message, words)
  assert.deepEqual(vms(), had, 'nothing is left of it')
  return answer
}

describe('a deployment without room', () => {
  it('a deployment without room is refused with the reason of each node, and leaves no VM', async () => {
    await create('tagged', { tag: 'nowhere', tag_required: true })
    await refused(422, /^Node macpro-1 does not have tag nowhere$/, { orka_vm_name: 'tagged' })
    await create('gpu', { gpu_passthrough: true })
    await refused(422, /^Node macpro-1 has no GPU$/, { orka_vm_name: 'gpu' })
    await create('first')
    const ports = { orka_vm_name: 'first', reserved_ports: ['8000:80'] }
    assert.equal((await service.call('POST', '/resources/vm/deploy', { body: ports })).status, 200)
    await refused(409, /fits on no node now\. Node macpro-1 does not have port 8000 free/, ports)
    // All or none: the first of the three would fit.
    await refused(409, /does not have port 9000 free/, { ...ports, reserved_ports: ['9000:80'], replicas: 3 })
  })

  it('a deployment without cores is refused with the message that clients look for', async () => {
    await create('five', { orka_cpu_core: 5 })
    await refused(409, /^No available nodes with sufficient CPU\.$/, { orka_vm_name: 'five', replicas: 3 })
    await create('large', { orka_cpu_core: 64 })
    await refused(409, /^Requested CPU is not available in the cluster$/, { orka_vm_name: 'large' })
  })

  it('a deployment without a node of its architecture is refused with another message', async () => {
    await create('arm', { orka_base_image: 'sonoma' })
    await refused(422, /arm64/, { orka_vm_name: 'arm' })
    await refused(422, /macpro-1.*arm64/, { orka_vm_name: 'arm', orka_node_name: 'macpro-1' })
  })

  it('a deployment with an attached disk is refused, on deploy as on create', async () => {
    await create('plain')
    for (const disk of [{ attach_disk: true }, { attached_disk: 'data.img' }])
      await refused(400, /attached disks no longer exist/, { orka_vm_name: 'plain', ...disk })
  })

  it('a deployment on an unknown node is 404', async () => {
    await refused(404, /^Node macpro-9 not found$/, { orka_vm_name: 'five', orka_node_name: 'macpro-9' })
  })
})

describe('a client that disconnects', () => {
  it('the VM of a client that disconnects is deleted', async () => {
    await create(stuck)
    const url = `${await service.listen()}/resources/vm/deploy`
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${service.adminToken}` }
    const body = JSON.stringify({ orka_vm_name: stuck })
    const answer = fetch(url, { method: 'POST', headers, body, signal: leaving.signal }).catch(() => 'left')
    await eventually(async () => assert.ok(vms().includes(stuck)))
    leaving.abort()
    assert.equal(await answer, 'left')
    await eventually(async () => assert.ok(!vms().includes(stuck)))
  })
})

describe('io_boost', () => {
  it('io_boost of Intel-based VMs is the requested one in every answer', async () => {
    const boosts = async (method: string, url: string, body?: object): Promise<boolean[]> =>
      [...(await service.call(method, url, { body })).text.matchAll(/"io_boost":(true|false)/g)].map(
        ([, value]) => value === 'true',
      )
    await create('slow', { io_boost: false, orka_cpu_core: 1 })
    assert.deepEqual(await boosts('GET', '/resources/vm/configs/slow'), [false])
    assert.deepEqual(await boosts('GET', '/resources/vm/status/slow'), [false])
    assert.deepEqual(await boosts('POST', '/resources/vm/deploy', { orka_vm_name: 'slow' }), [false])
    assert.deepEqual(await boosts('GET', '/resources/vm/status/slow'), [false])
    assert.deepEqual(await boosts('GET', '/resources/vm/status/first'), [true])
    await create('slow-arm', { io_boost: false, orka_base_image: 'sonoma' })
    assert.deepEqual(await boosts('GET', '/resources/vm/configs/slow-arm'), [true])
  })
})
