// Which engine an address means: `memory:`, `sqlite:<folder>`. A new engine is a file here and a line in the table.
import { openMemory } from './memory.ts'
import { openSqlite } from './sqlite.ts'
import { type Store, StoreError } from './store.ts'

const engines: Readonly<Record<string, (place: string) => Promise<Store>>> = {
  memory: async () => openMemory(),
  sqlite: (folder) => openSqlite(folder),
}

/** The places are taken literally: a folder may hold any character. */
export async function openStore(address: string): Promise<Store> {
  const colon = address.indexOf(':')
  const scheme = address.slice(0, Math.max(colon, 0))
  const open = Object.hasOwn(engines, scheme) ? engines[scheme] : undefined
  if (!open) throw new StoreError('Unavailable', `"${address}" names no store: use one of memory:, sqlite:<folder>`)
  const place = address.slice(colon + 1)
  if (scheme === 'sqlite' && place === '')
    throw new StoreError('Unavailable', `"${address}" names no folder: write sqlite:<folder>`)
  return open(place)
}
