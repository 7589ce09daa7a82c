// Chooses the engine by the address: `memory:`, `sqlite:<folder>`, `etcd://…`. A new engine is a file and a line in the
// table.

import { parseEtcdAddress } from './etcd/address.ts'
import { openEtcd } from './etcd/engine.ts'
import { openMemory } from './memory.ts'
import { openSqlite } from './sqlite/engine.ts'
import { type Store, StoreError } from './store.ts'

/** Receives warnings for the operator that do not keep the store from working. */
type Notice = (text: string) => void

interface OpenOptions {
  /** The first revision of a new store. */
  readonly startRev?: number
}

const engines: Readonly<Record<string, (place: string, notice: Notice, options: OpenOptions) => Promise<Store>>> = {
  memory: async () => openMemory(),
  sqlite: (folder, _, options) => openSqlite(folder, options),
  etcd: async (place, notice, options) => openEtcd({ ...parseEtcdAddress(place, notice), ...options }),
}

/** Folders are taken literally, because they may contain any character. */
export async function openStore(
  address: string,
  notice: Notice = () => undefined,
  options: OpenOptions = {},
): Promise<Store> {
  const colon = address.indexOf(':')
  const scheme = address.slice(0, Math.max(colon, 0))
  const open = Object.hasOwn(engines, scheme) ? engines[scheme] : undefined
  if (!open)
    throw new StoreError(
      'Unavailable',
      `"${address.replace(/\/\/[^/]*@/, '//…@')}" is not a store: use memory:, sqlite:<folder>, etcd://HOST:PORT/PREFIX`,
    )
  const place = address.slice(colon + 1)
  if (scheme === 'sqlite' && place === '')
    throw new StoreError('Unavailable', `"${address}" has no folder: use sqlite:<folder>`)
  return open(place, notice, options)
}
