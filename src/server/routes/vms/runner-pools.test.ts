// Runner pools over HTTP: a pool always has its secrets, which change only with it.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, it } from 'node:test'
import { startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { addImage } from '../../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import { StoreError } from '../../../store/store.ts'

const base = '/api/v1/namespaces/svc-default'
let service: TestService

beforeEach(async () => {
  service = await startService()
  await addImage(service, 'tiny', 'amd64')
  await service.call('POST', `${base}/vmconfigs`, { body: { name: 'small', image: 'tiny', cpu: 1 } })
})
afterEach(() => service[Symbol.asyncDispose]())

const create = () =>
  service.call('POST', `${base}/runnerpools`, {
    body: { name: 'ci', config: 'small', max: 10, url: 'http://127.0.0.1:2/acme', credential: { token: 'ghp_old' } },
  })
const pool = () => service.services.collections.runnerPools.get('svc-default', 'ci')
function credential(): unknown {
  const entry = service.services.collections.runnerCredentials.get('', pool()?.value.uid ?? '')
  return entry && service.services.secrets.open(entry.key, entry.value)
}

it('a runner pool whose write had an unknown result has its credentials if it exists', async (t) => {
  const { store, collections } = service.services
  const make = store.create.bind(store)
  const late = Promise.withResolvers<void>()
  t.mock.method(store, 'create', async (...asked: Parameters<typeof make>) => {
    if (!asked[0].startsWith(collections.runnerPools.prefix)) return make(...asked)
    void late.promise.then(() => make(...asked))
    throw new StoreError('Unknown', 'the answer was lost')
  })
  const answer = await create()
  assert.ok(answer.status >= 500, answer.text)
  late.resolve()
  await eventually(() => assert.ok(pool()))
  assert.ok(credential())
})

it('a refused change of a runner pool keeps its credentials', async () => {
  assert.equal((await create()).status, 201)
  const before = credential()
  assert.ok(before)
  const change = (body: object) =>
    service.call('PUT', `${base}/runnerpools/ci`, { body: { credential: { token: 'ghp_new' }, ...body } })
  assert.equal((await change({ minIdle: 50 })).status, 422)
  assert.deepEqual(credential(), before)
  assert.equal((await service.call('DELETE', `${base}/runnerpools/ci`)).status, 200)
  assert.equal((await change({})).status, 409)
  assert.deepEqual(credential(), before)
})
