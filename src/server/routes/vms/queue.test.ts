// The queue through the API, with the real scheduler: which VM gets free capacity, when a node is reserved for a large VM, and
// what users see.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type Answer, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import type { VmRecord } from '../../../store/records/fleet-records.ts'

const inDefault = '/api/v1/namespaces/svc-default'
let service: TestService
let scheduler: AsyncDisposable

beforeEach(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
})
afterEach(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const tokens = () => ({ admin: service.adminToken, dev: service.devToken })
type Who = keyof ReturnType<typeof tokens>
const deploy = (name: string, body: object = {}, who: Who = 'admin', query = '?wait=false'): Promise<Answer> =>
  service.call('POST', `${inDefault}/vms${query}`, {
    token: tokens()[who],
    body: { image: 'intel', cpu: 4, memory: 1, name, ...body },
  })
const remove = (name: string): Promise<Answer> => service.call('DELETE', `${inDefault}/vms/${name}`)
const until = (name: string, test: (record: VmRecord) => boolean) =>
  service.services.waits.until(
    service.services.collections.vms.key('svc-default', name),
    (entry) => (entry && test(entry.value)) || undefined,
    { ms: 60_000 },
  )
const isRunning = ({ observed }: VmRecord): boolean => observed.hasRun
const messageOf = ({ conditions }: VmRecord): string =>
  conditions.find(({ type }) => type === 'Scheduled')?.message ?? ''
const isWaiting = (record: VmRecord): boolean => !record.place && messageOf(record) !== ''
const queue = async () => (await service.call('GET', `${inDefault}/queue`)).body.items
const names = async (): Promise<string[]> => (await queue()).map(({ name }: { name: string }) => name)

describe('the queue of a namespace', () => {
  it('the queue of a namespace gives capacity to the owner with the lowest share, then by priority and age', async () => {
    await startNode(service)
    for (const name of ['a', 'b']) assert.equal((await deploy(name, {}, 'admin', '')).status, 201)
    await deploy('c', {}, 'admin')
    await deploy('d', { priority: 5 }, 'admin')
    await deploy('late', {}, 'dev')
    for (const name of ['c', 'd', 'late']) await until(name, isWaiting)
    assert.deepEqual(await names(), ['late', 'd', 'c'])
    const [first] = await queue()
    assert.deepEqual([first.position, first.share, first.cpu, first.memory], [1, 0, 4, '1.00Gi'])
    assert.equal(first.message, 'Node node-1 has 0 of 8 cores free; 4 requested')
    assert.equal(first.expectedWaitSeconds, undefined)
    await remove('a')
    await until('late', isRunning)
    assert.deepEqual(await names(), ['d', 'c'])
    await remove('b')
    await until('d', isRunning)
    assert.equal((await service.call('GET', `${inDefault}/vms/d`)).body.priority, 5)
    service.clock.nowMs += 60_000
    await remove('late')
    await until('c', isRunning)
    assert.deepEqual(await queue(), [])
  })

  it('the queue of a namespace estimates the wait from how often VMs ended', async () => {
    await startNode(service)
    for (let count = 0; count < 4; count++) {
      await deploy('short', { cpu: 8 }, 'admin', '')
      await remove('short')
      service.clock.nowMs += 30_000
    }
    await deploy('full', { cpu: 8 }, 'admin', '')
    await deploy('x')
    await deploy('y')
    await until('y', isWaiting)
    assert.deepEqual(
      (await queue()).map((each: { expectedWaitSeconds: number }) => each.expectedWaitSeconds),
      [40, 80],
    )
  })

  it('the queue of a namespace keeps a node free for a large VM that was passed over for a minute', async () => {
    await startNode(service)
    await startNode(service, { name: 'node-2', report: { cpu: 4, ip: '127.0.0.2' } })
    for (const name of ['a', 'b', 'c']) assert.equal((await deploy(name, {}, 'admin', '')).status, 201)
    await deploy('large', { cpu: 8 })
    await until('large', isWaiting)
    const onLarge = ['a', 'b', 'c'].filter(
      (name) => service.services.collections.vms.get('svc-default', name)?.value.place?.node === 'node-1',
    )
    assert.equal(onLarge.length, 2)
    await remove(onLarge[0] ?? '')
    // A later small VM would take capacity that the large one needs.
    service.clock.nowMs += 1_000
    await deploy('d', {}, 'admin', '')
    service.clock.nowMs += 61_000
    await deploy('e')
    await until('large', (record) => / Node node-1 is kept free for it$/.test(messageOf(record)))
    await until('e', isWaiting)
    await remove('d')
    await until('e', (record) => /kept free for VM large/.test(messageOf(record)))
    await remove(onLarge[1] ?? '')
    await until('large', isRunning)
    assert.equal(service.services.collections.vms.get('svc-default', 'large')?.value.place?.node, 'node-1')
  })

  it('the queue of a namespace is visible only to its developers', async () => {
    assert.equal((await service.call('GET', `${inDefault}/queue`, { token: service.devToken })).status, 200)
    assert.equal(
      (await service.call('GET', '/api/v1/namespaces/svc-other/queue', { token: service.devToken })).status,
      403,
    )
    assert.equal((await deploy('x', { priority: 1_001 })).status, 422)
  })
})
