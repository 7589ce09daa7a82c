// The store's contract on SQLite, each store in a separate folder.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import type { Store } from '../../src/store/store.ts'
import { type EngineOptions, storeContract } from './store.ts'

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-store-'))
after(() => fs.rmSync(root, { recursive: true, force: true }))

const places = new WeakMap<Store, { readonly folder: string; readonly options: EngineOptions | undefined }>()
let stores = 0

async function open(folder: string, options: EngineOptions | undefined): Promise<Store> {
  const store = await openSqlite(folder, options)
  places.set(store, { folder, options })
  return store
}

storeContract({
  name: 'sqlite',
  open: (options) => open(path.join(root, String(++stores)), options),
  async reopen(store) {
    const place = places.get(store)
    if (!place) throw new Error('only what was opened here can be reopened')
    await store.close()
    return open(place.folder, place.options)
  },
})
