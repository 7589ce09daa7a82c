// Single-use join tokens: the first key that presents a token claims it in the store. The same key may retry, as after a
// crash, until its node exists.
import { createHash } from 'node:crypto'
import { ApiError } from '../../api/errors.ts'
import type { JoinGrant } from '../../auth/node-keys.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { UsedRecord } from '../../store/records/server-records.ts'
import { type Entry, ignoreLost, isFault } from '../../store/store.ts'

export const badJoinToken = (what: string): ApiError =>
  new ApiError('Unauthorized', `Unauthorized: the join token ${what}`, {
    hint: 'Create a new one: svc3 node join-token',
  })

export const badSignature = (node: string): ApiError =>
  new ApiError('Unauthorized', `Unauthorized: "${node.slice(0, 100)}" is not a node with that key`, {
    hint: 'If the node was removed, join again with a new token; otherwise check its clock',
  })

/** Refuses a second key. Returns a function to call once the node exists. */
export async function joinOnce(
  { collections, clock }: { readonly collections: Pick<Collections, 'used' | 'nodes'>; readonly clock: Clock },
  { onceId, expiresAt }: JoinGrant,
  { name, publicKey }: { readonly name: string; readonly publicKey: string },
): Promise<() => Promise<void>> {
  const { used, nodes } = collections
  if (onceId === undefined) return async () => undefined
  const id = createHash('sha256').update(`join ${onceId}`).digest('base64url')
  const record: UsedRecord = {
    firstAt: timestamp(clock.now()),
    // With some tolerance for clock skew.
    expiresAt: timestamp(new Date(expiresAt.getTime() + 10 * 60_000)),
    publicKey,
  }
  let entry: Entry<UsedRecord> | undefined
  try {
    entry = await used.create('', id, record)
  } catch (error) {
    if (!isFault(error, 'AlreadyExists')) throw error
    entry = used.get('', id)
  }
  const isSameKey = entry?.value.publicKey === publicKey
  const hasJoined = nodes.get('', name)?.value.publicKey === publicKey
  // A removed node does not come back with the same token.
  if (!entry || !isSameKey || (entry.value.isDone && !hasJoined)) throw badJoinToken('was already used')
  const taken = entry
  return async () => {
    if (!taken.value.isDone) await used.update(taken, { ...taken.value, isDone: true }).catch(ignoreLost)
  }
}
