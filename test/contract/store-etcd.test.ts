// The store's contract on etcd: one member, each store below a prefix of its own; once as it is, once with data of the first
// format, of which whatever is asked has a form that shims know. SVC3_TEST_ETCD_URL names one that runs already, or a shim
// (see CONTRIBUTING.md).
import assert from 'node:assert/strict'
import { after, before, mock } from 'node:test'
import { Connection } from '../../src/store/etcd/connection.ts'
import { openEtcd } from '../../src/store/etcd/engine.ts'
import { encodeCreate, methods } from '../../src/store/etcd/protocol.ts'
import { firstFormat, type Meta, newOperationId } from '../../src/store/etcd/records.ts'
import type { Store } from '../../src/store/store.ts'
import { startEtcd } from '../support/processes/etcd.ts'
import { assertKnownToShims, transactionsSeen } from '../support/processes/etcd-shapes.ts'
import { type Engine, type EngineOptions, storeContract } from './store.ts'

const given = process.env.SVC3_TEST_ETCD_URL
let urls: readonly string[] = []
let end = async (): Promise<void> => undefined
let mayShare = false

before(async () => {
  const { unary } = Connection.prototype
  mock.method(Connection.prototype, 'unary', function (this: Connection, ...call: Parameters<typeof unary>) {
    assertKnownToShims(call[0], call[1], mayShare)
    return unary.apply(this, call)
  })
  const etcd = given === undefined ? await startEtcd() : { urls: [given], end }
  urls = etcd.urls
  end = etcd.end
})
after(async () => {
  mock.restoreAll()
  await end()
  assert.deepEqual(
    [...transactionsSeen].sort(),
    given === undefined ? ['create', 'delete', 'together', 'update'] : ['create', 'delete', 'update'],
  )
})

const places = new WeakMap<Store, { readonly prefix: string; readonly options: EngineOptions | undefined }>()
/** No two runs on the same etcd meet. */
const run = newOperationId()
let stores = 0

async function open(prefix: string, options: EngineOptions | undefined): Promise<Store> {
  const endpoints = urls.map((url) => ({ url }))
  const store = await openEtcd({ ...options, endpoints, prefix, notice: () => undefined })
  places.set(store, { prefix, options })
  return store
}

/** As a program that knew no other format would have begun it. */
async function beginFirst(prefix: string): Promise<void> {
  const connection = await Connection.open({ url: urls[0] ?? '' })
  const meta = Buffer.from(JSON.stringify({ format: firstFormat, startRev: 0 } satisfies Meta))
  await connection.unary(methods.txn, encodeCreate(Buffer.from(`/${prefix}/meta`), meta), {}, 5_000)
  connection.close()
}

const engine = (name: string, isFirst: boolean): Engine => ({
  name,
  async open(options) {
    mayShare = !isFirst && given === undefined
    const prefix = `contract-${run}-${++stores}`
    if (isFirst) await beginFirst(prefix)
    return open(prefix, options)
  },
  async reopen(store) {
    const place = places.get(store)
    if (!place) throw new Error('only what was opened here can be reopened')
    await store.close()
    return open(place.prefix, place.options)
  },
  ...(!isFirst && given === undefined && { revStep: 100 }),
  // As shims make it necessary.
  mayWriteAtOpen: given !== undefined,
})

storeContract(engine('etcd', false))
if (given === undefined) storeContract(engine('etcd, in the forms that shims know', true))
