// Rewrites the records that alphas up to 28 wrote in another form, and that later ones converted whenever they read them.
import { type Entry, ignoreLost, isFault, type Json, type Store } from '../store.ts'

type OldVm = { readonly wish?: Json }
type OldEvent = { readonly earlier?: readonly { readonly name: string }[] }

const doneKey = '/old-records/rewritten'

/** Runs once. Every step can be repeated, so a crash does no harm, nor does another server that does the same. */
export async function rewriteOldRecords(store: Store): Promise<void> {
  if (await store.get(doneKey)) return
  for (const { key, value, rev } of (await store.list('/vms/')).entries as readonly Entry<OldVm>[]) {
    const { wish, ...vm } = value
    if (wish !== undefined) await store.update(key, { ...vm, desired: wish }, rev).catch(ignoreLost)
  }
  for (const { key, value, rev } of (await store.list('/events/')).entries as readonly Entry<OldEvent>[]) {
    const { earlier, ...event } = value
    if (!earlier) continue
    const place = key.slice(0, key.lastIndexOf('/') + 1)
    for (const each of earlier) await store.create(place + encodeURIComponent(each.name), each).catch(ignoreExisting)
    await store.update(key, event, rev).catch(ignoreLost)
  }
  await store.create(doneKey, {}).catch(ignoreExisting)
}

function ignoreExisting(error: unknown): void {
  if (!isFault(error, 'AlreadyExists')) throw error
}
