// Quotas through the API, with a simulated node: limits, waiting, refusals, and releases.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type Answer, type CallOptions, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { QuotaSweep } from '../../../controllers/scheduling/admission.ts'
import { quotaOf } from '../../../store/records/quotas.ts'

const inDefault = '/api/v1/namespaces/svc-default'
let service: TestService
let scheduler: AsyncDisposable

beforeEach(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  await startNode(service)
})
afterEach(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const deploy = (name: string, query = '', options: CallOptions = {}): Promise<Answer> =>
  service.call('POST', `${inDefault}/vms${query}`, { ...options, body: { image: 'intel', cpu: 1, name } })
const remove = (name: string): Promise<Answer> => service.call('DELETE', `${inDefault}/vms/${name}`)
const set = (body: object, options: CallOptions = {}): Promise<Answer> =>
  service.call('PUT', `${inDefault}/quota`, { ...options, body })
const get = (): Promise<Answer> => service.call('GET', `${inDefault}/quota`)
/** The limits of records, which always have a value. */
const forRecords = { records: 20_000, recordSize: 32 }
const used = () => quotaOf(service.services.collections, 'svc-default')?.value.used
const vm = (name: string) => service.services.collections.vms.get('svc-default', name)?.value
const until = (name: string, test: (record: ReturnType<typeof vm>) => boolean) =>
  service.services.waits.until(
    service.services.collections.vms.key('svc-default', name),
    (entry) => test(entry?.value) || undefined,
    { ms: 60_000 },
  )
const reasonOf = (record: ReturnType<typeof vm>): string | undefined =>
  record?.conditions.find(({ type, status }) => type === 'Scheduled' && status === 'False')?.reason

describe('the quota of a namespace', () => {
  it('the quota of a namespace without one shows no limits and the use, and writes nothing', async () => {
    assert.equal((await deploy('one')).status, 201)
    const { status, body } = await get()
    assert.equal(status, 200)
    assert.deepEqual([body.limits, body.used], [forRecords, { vms: 1, cpu: 1, memory: 1.6, macos: 0 }])
    assert.equal(body.owners[0].share, 0.125)
    assert.equal(service.services.collections.quotas.list().length, 0)
  })

  it('the quota of a namespace lets a VM wait, with the reason, until another one ends', async () => {
    await deploy('one')
    assert.deepEqual((await set({ vms: 1, cpu: 4 })).body.limits, { vms: 1, cpu: 4, ...forRecords })
    assert.equal((await deploy('two', '?wait=false')).status, 202)
    await until('two', (record) => reasonOf(record) === 'OverQuota')
    assert.match(vm('two')?.conditions[0]?.message ?? '', /^Quota of svc-default reached: 1 of 1 VMs in use$/)
    assert.equal((await get()).body.owners[0].waiting, 1)
    assert.equal((await remove('one')).status, 200)
    await until('two', (record) => record?.observed.hasRun === true)
    assert.deepEqual(Object.keys(used() ?? {}), [vm('two')?.uid])
    await remove('two')
    assert.deepEqual(used(), {})
  })

  it('the quota of a namespace that is raised or removed lets waiting VMs run', async () => {
    await set({ vms: 0 })
    await deploy('one', '?wait=false')
    await until('one', (record) => reasonOf(record) === 'OverQuota')
    await set({ vms: 1 })
    await until('one', (record) => record?.observed.hasRun === true)
    await deploy('two', '?wait=false')
    await until('two', (record) => reasonOf(record) === 'OverQuota')
    assert.deepEqual((await set({ unlimited: ['vms'] })).body.limits, forRecords)
    await until('two', (record) => record?.observed.hasRun === true)
    assert.equal(service.services.collections.quotas.list().length, 0)
  })

  it('the quota of a namespace is in the hint when a deployment times out because of it', async () => {
    await set({ vms: 0 })
    const body = { image: 'intel', cpu: 1, name: 'one', timeout: 0.03 }
    const late = await service.call('POST', `${inDefault}/vms`, { body })
    assert.deepEqual(
      [late.status, late.body.hint],
      [504, 'The VM was removed. Run svc3 quota show -n svc-default to see what is in use, or set a longer --timeout'],
    )
    const refused = await deploy('one', '?onQuota=refuse')
    assert.match(refused.body.hint, /deploy without --on-quota refuse \(onQuota=refuse\) to wait/)
  })

  it('the quota of a namespace refuses a request that does not wait, which leaves nothing behind', async () => {
    await set({ cpu: 1 })
    assert.equal((await deploy('one', '?onQuota=refuse')).status, 201)
    const { status, body } = await deploy('two', '?onQuota=refuse')
    assert.equal(status, 403)
    assert.match(body.message, /Quota of svc-default reached: 1 of 1 cores in use; 1 requested/)
    assert.equal(vm('two'), undefined)
    assert.equal((await deploy('one', '?onQuota=refuse')).status, 409)
    await set({ cpu: 2 })
    assert.equal((await deploy('one', '?onQuota=refuse')).status, 409)
    assert.deepEqual(Object.values(used() ?? {}), [[1, 1_638, 0]])
    assert.equal((await deploy('x', '?onQuota=later')).status, 400)
  })

  it('the quota of a namespace cannot be set below the use', async () => {
    await deploy('one')
    await deploy('two')
    await set({ vms: 4 })
    const before = used()
    const { status, body } = await set({ vms: 1, cpu: 1, macos: 0 })
    assert.equal(status, 422)
    assert.deepEqual(
      body.details.causes.map(({ field, message }: { field: string; message: string }) => [field, message]),
      [
        ['vms', 'vms is below use: 2 VMs in use, limit 1'],
        ['cpu', 'cpu is below use: 2 cores in use, limit 1'],
      ],
    )
    assert.deepEqual([(await get()).body.limits, used()], [{ vms: 4, ...forRecords }, before])
  })

  it('the quota of a namespace is set by administrators, and visible to its developers', async () => {
    const token = service.devToken
    assert.equal((await set({ vms: 4 }, { token })).status, 403)
    assert.equal((await service.call('GET', `${inDefault}/quota`, { token })).status, 200)
    assert.equal((await service.call('GET', '/api/v1/namespaces/svc-nowhere/quota')).status, 404)
    for (const body of [
      { vms: -1 },
      { vms: 1.5 },
      { cpu: 'many' },
      { memory: 1e9 },
      { weights: { ada: 0 } },
      { unlimited: ['disk'] },
    ])
      assert.match(`${(await set(body)).status}`, /^(400|422)$/, JSON.stringify(body))
    assert.equal(service.services.collections.quotas.list().length, 0)
  })

  it('the quota of a namespace has weights of owners, and removes a weight of 1', async () => {
    assert.deepEqual((await set({ weights: { 'ada@example.com': 3 } })).body.owners[0].weight, 3)
    assert.deepEqual((await set({ weights: { 'ada@example.com': 1 } })).body.owners, [])
    assert.equal(service.services.collections.quotas.list().length, 0)
  })

  it('the quota of a namespace drops a uid without a VM at the second sweep, and adds missing VMs', async () => {
    await deploy('one')
    await set({ vms: 4 })
    const { collections } = service.services
    const uid = vm('one')?.uid ?? ''
    await collections.quotas.change(collections.quotas.key('svc-default', 'quota'), (record) =>
      record ? { ...record, used: { stray: [1, 1, 0] } } : undefined,
    )
    const sweep = new QuotaSweep()
    await sweep.run(collections)
    assert.deepEqual(Object.keys(used() ?? {}).sort(), ['stray', uid].sort())
    await sweep.run(collections)
    assert.deepEqual(used(), { [uid]: [1, 1_638, 0] })
  })

  it('the quota of a namespace is deleted with it', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-short' } })
    await service.call('PUT', '/api/v1/namespaces/svc-short/quota', { body: { vms: 1 } })
    await service.call('DELETE', '/api/v1/namespaces/svc-short')
    assert.equal(service.services.collections.quotas.list().length, 0)
  })

  it('the quota of a namespace that is deleted concurrently does not remain for a new one of the same name', async (t) => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-short' } })
    const { store, collections } = service.services
    const create = store.create.bind(store)
    t.mock.method(store, 'create', async (...asked: Parameters<typeof create>) => {
      if (asked[0].startsWith(collections.quotas.prefix))
        assert.equal((await service.call('DELETE', '/api/v1/namespaces/svc-short')).status, 200)
      return create(...asked)
    })
    const answer = await service.call('PUT', '/api/v1/namespaces/svc-short/quota', { body: { vms: 1 } })
    assert.equal(answer.status, 404, answer.text)
    assert.deepEqual(collections.quotas.list(), [])
  })
})
