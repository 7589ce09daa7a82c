// The store's contract on etcd: one member, each store below a separate prefix. SVC3_TEST_ETCD_URL names one that runs
// already (see CONTRIBUTING.md).
import { after, before } from 'node:test'
import { openEtcd } from '../../src/store/etcd/engine.ts'
import { newOperationId } from '../../src/store/etcd/records.ts'
import type { Store } from '../../src/store/store.ts'
import { startEtcd } from '../support/processes/etcd.ts'
import { type EngineOptions, storeContract } from './store.ts'

const given = process.env.SVC3_TEST_ETCD_URL
let urls: readonly string[] = []
let end = async (): Promise<void> => undefined

before(async () => {
  const etcd = given === undefined ? await startEtcd() : { urls: [given], end }
  urls = etcd.urls
  end = etcd.end
})
after(() => end())

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

storeContract({
  name: 'etcd',
  open: (options) => open(`contract-${run}-${++stores}`, options),
  async reopen(store) {
    const place = places.get(store)
    if (!place) throw new Error('only what was opened here can be reopened')
    await store.close()
    return open(place.prefix, place.options)
  },
})
