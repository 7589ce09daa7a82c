// VMs that are asked for where the scheduler runs: what their first write says, and what is left of a node when it fails.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { rehearse } from '../../store/rehearsal.ts'
import { type Precondition, StoreError } from '../../store/store.ts'
import { NewVms } from './new-vms.ts'

const inDefault = '/api/v1/namespaces/svc-default'
let service: TestService
let scheduler: AsyncDisposable
/** What each VM was when it was first written. */
let first: Map<string, VmRecord>

beforeEach(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  first = new Map()
  service.services.collections.vms.view.subscribe((changes) => {
    for (const change of changes)
      if (change.type === 'put' && !change.previous) first.set(change.entry.value.name, change.entry.value)
  })
  await addImage(service, 'intel', 'amd64')
  await startNode(service)
})
afterEach(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const deploy = (name: string, cpu = 1, wait = true) =>
  service.call('POST', `${inDefault}/vms?wait=${wait}`, { body: { image: 'intel', name, cpu } })
const freeCpu = async (): Promise<number> =>
  (await service.call('GET', `${inDefault}/nodes`)).body.items[0].availableCpu
const placed = (): string[] => [...service.services.collections.nodeVms.on('node-1')].map(({ value }) => value.name)
const recordOf = (name: string): VmRecord =>
  service.services.collections.vms.get('svc-default', name)?.value as VmRecord

describe('a new VM', () => {
  it('a new VM is first written with its place, and the request sees it there', async () => {
    const { status, body } = await deploy('demo', 1, false)
    assert.deepEqual([status, body.node], [202, 'node-1'])
    assert.equal(first.get('demo')?.place?.node, 'node-1')
    assert.equal(first.get('demo')?.conditions[0]?.reason, 'Placed')
    assert.deepEqual(placed(), ['demo'])
  })

  it('a new VM that fits nowhere is first written with the reason, and placed when there is room', async () => {
    await deploy('large', 8)
    await deploy('next', 8, false)
    assert.match(first.get('next')?.conditions[0]?.message ?? '', /node-1/)
    // Somebody waits: whoever comes now is behind, and takes the ordinary way.
    await deploy('third', 8, false)
    assert.deepEqual(first.get('third')?.conditions, [])
    await service.call('DELETE', `${inDefault}/vms/large`)
    await eventually(() => assert.equal(recordOf('next').observed.power, 'running'))
    assert.deepEqual(placed(), ['next'])
  })

  it('a new VM whose name is taken leaves nothing reserved', async () => {
    const answers = await Promise.all([deploy('twice'), deploy('twice'), deploy('other')])
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 201, 409])
    assert.equal((await deploy('twice')).status, 409)
    assert.deepEqual(placed().toSorted(), ['other', 'twice'])
  })

  it('a new VM whose first write nobody answered for is where the next look finds it, or nowhere', async () => {
    await deploy('known')
    const { newVms, collections } = service.services
    const lost = { ...recordOf('known'), name: 'lost', uid: 'lost-uid' }
    const { place: _, ...record } = lost
    const unanswered = (isWritten: boolean) =>
      newVms.written(
        record,
        async (vm, preconditions) => {
          if (isWritten) await collections.vms.create('svc-default', 'lost', vm, preconditions)
          throw new StoreError('Unknown', 'no answer')
        },
        () => false,
      )
    await assert.rejects(unanswered(false), /no answer/)
    await deploy('next')
    assert.deepEqual(placed().toSorted(), ['known', 'next'])
    await assert.rejects(unanswered(true), /no answer/)
    await deploy('last')
    assert.deepEqual(placed().toSorted(), ['known', 'last', 'lost', 'next'])
    assert.equal(await freeCpu(), 4)
  })

  it('a new VM whose node changed before it was written waits for its turn, and gets a place', async () => {
    const { newVms, collections } = service.services
    await deploy('known')
    const { place: _, ...record } = { ...recordOf('known'), name: 'late', uid: 'late-uid', conditions: [] }
    const write = async (vm: VmRecord, preconditions: readonly Precondition[]) => {
      if (vm.place) await collections.nodes.change('/nodes/node-1', (node) => node && { ...node, tags: ['new'] })
      return collections.vms.create('svc-default', vm.name, vm, preconditions)
    }
    const written = await newVms.written(record, write, () => true)
    assert.equal(written.value.place, undefined)
    await eventually(() => assert.equal(recordOf('late').place?.node, 'node-1'))
  })

  it('a dry run of a new VM reserves nothing', async () => {
    await deploy('known')
    const { newVms, collections } = service.services
    const { place: _, ...record } = { ...recordOf('known'), name: 'dry', uid: 'dry-uid' }
    const write = (vm: VmRecord) => collections.vms.create('svc-default', vm.name, vm)
    const written = await rehearse(() => newVms.written(record, write, () => true))
    assert.ok(written)
    assert.equal((written.value as VmRecord).place, undefined)
    assert.deepEqual(placed(), ['known'])
  })

  it('a new VM is written before a quota counts it', async () => {
    await service.call('PUT', `${inDefault}/quota`, { body: { cpu: 4 } })
    await deploy('counted')
    assert.deepEqual(first.get('counted')?.conditions, [])
    assert.equal(recordOf('counted').place?.node, 'node-1')
  })

  it('a new VM on a server without a scheduler is written as it is', async () => {
    await scheduler[Symbol.asyncDispose]()
    await deploy('early', 1, false)
    assert.deepEqual(first.get('early')?.conditions, [])
    scheduler = startScheduler(service)
    await eventually(() => assert.equal(recordOf('early').observed.power, 'running'))
    const write = (vm: VmRecord) => Promise.resolve({ key: 'k', value: vm, rev: '1' })
    assert.equal((await new NewVms().written(recordOf('early'), write, () => false)).value, recordOf('early'))
  })
})
