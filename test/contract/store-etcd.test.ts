// The store's contract on etcd: one member, each store below a prefix of its own.
import { after, before } from 'node:test'
import { openEtcd } from '../../src/store/etcd.ts'
import type { Store } from '../../src/store/store.ts'
import { type EtcdCluster, startEtcd } from '../support/etcd.ts'
import { type EngineOptions, storeContract } from './store.ts'

let etcd: EtcdCluster
before(async () => {
  etcd = await startEtcd()
})
after(() => etcd.end())

const places = new WeakMap<Store, { readonly prefix: string; readonly options: EngineOptions | undefined }>()
let stores = 0

async function open(prefix: string, options: EngineOptions | undefined): Promise<Store> {
  const endpoints = etcd.urls.map((url) => ({ url }))
  const store = await openEtcd({ ...options, endpoints, prefix, notice: () => undefined })
  places.set(store, { prefix, options })
  return store
}

storeContract({
  name: 'etcd',
  open: (options) => open(`contract-${++stores}`, options),
  async reopen(store) {
    const place = places.get(store)
    if (!place) throw new Error('only what was opened here can be reopened')
    await store.close()
    return open(place.prefix, place.options)
  },
})
