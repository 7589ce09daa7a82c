// `svc3 server forget`: a server that will not come back is not waited for any more. Written into the store, where every
// other one sees it.
import { setTimeout as sleep } from 'node:timers/promises'
import { graceFactor, hostOf } from '../server/cluster/servers.ts'
import type { KnownServerRecord, ServerRecord } from '../store/records/server-records.ts'
import { type Entry, ignoreLost, type Store } from '../store/store.ts'

/** It is not one that can be forgotten. */
export class NotForgottenError extends Error {
  override readonly name = 'NotForgottenError'
}

const lookMs = 250

/** By the address that the others name when they wait for it. One that comes back all the same is known again. */
export async function forgetServer(store: Pick<Store, 'get' | 'list' | 'delete'>, name: string): Promise<void> {
  const known = (await store.list('/known-servers/'))
    .entries as readonly Entry<unknown>[] as readonly Entry<KnownServerRecord>[]
  const named = known.filter(({ value }) => [hostOf(value), value.internalUrl].includes(name))
  if (named.length === 0) {
    const hosts = [...new Set(known.map(({ value }) => hostOf(value)))]
    throw new NotForgottenError(
      `there is no server "${name}" to be waited for; ${hosts.length === 0 ? 'none is known' : `known are ${hosts.join(', ')}`}`,
    )
  }
  // At one address there may be one that runs beside one whose folder is gone.
  const renewed = await Promise.all(named.map(({ value: { id } }) => isRenewed(store, `/servers/${id}`)))
  const gone = named.filter((_, index) => !renewed[index])
  if (gone.length === 0)
    throw new NotForgottenError(
      `the server ${name} is alive, and what it has is not lost: stop it for good before it is forgotten`,
    )
  for (const { key, rev } of gone) await store.delete(key, rev).catch(ignoreLost)
}

/** As the others judge it: whether its record moves within its lease. One that was stopped has none. */
async function isRenewed(store: Pick<Store, 'get'>, key: string): Promise<boolean> {
  const first = (await store.get(key)) as Entry<ServerRecord> | undefined
  if (!first) return false
  const end = performance.now() + first.value.leaseMs * graceFactor
  for (;;) {
    const isOver = performance.now() >= end
    const now = await store.get(key)
    if (!now || now.rev !== first.rev) return now !== undefined
    if (isOver) return false
    await sleep(Math.min(lookMs, first.value.leaseMs))
  }
}
