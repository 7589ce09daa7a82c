// One watch on etcd, read until it ends.
import { type EtcdClient, EtcdFailure } from './client.ts'
import type { EtcdConnection } from './connection.ts'
import { decodeWatch, type EtcdEvent, encodeWatch, type KeyRange, methods } from './protocol.ts'

type WatchEnd =
  | { readonly kind: 'stopped' }
  /** The requested past was compacted. */
  | { readonly kind: 'compacted' }
  | { readonly kind: 'failed'; readonly text: string }

/** `revision` is that of the last event. Without events this is a progress notice. */
export type Deliver = (events: readonly EtcdEvent[], revision: number) => void

/** Delivers the changes of a range from a revision on, until `signal` aborts or etcd ends the watch. Never rejects. */
export async function readWatch(
  client: EtcdClient,
  range: KeyRange,
  startRevision: number,
  signal: AbortSignal,
  deliver: Deliver,
): Promise<WatchEnd> {
  if (signal.aborted) return { kind: 'stopped' }
  const ended = Promise.withResolvers<WatchEnd>()
  let connection: EtcdConnection | undefined
  const receive = (body: Buffer): void => {
    const { canceled, compactRevision, cancelReason, events, created, header } = decodeWatch(body)
    if (canceled) ended.resolve(compactRevision > 0 ? { kind: 'compacted' } : canceledBy(client, cancelReason))
    if (canceled || signal.aborted) return
    // In a message with events, the header has the member's own revision, which may be ahead of what it has sent.
    // Fragments of large messages need no joining, because every write has its own revision.
    const last = events.at(-1)
    if (last) deliver(events, last.kv.modRevision)
    else if (!created) deliver([], header.revision)
  }
  const stop = (): void => ended.resolve({ kind: 'stopped' })
  try {
    const opened = await client.stream(methods.watch, {
      message: (body) => {
        try {
          receive(body)
        } catch (error) {
          ended.resolve({ kind: 'failed', text: error instanceof Error ? error.message : String(error) })
        }
      },
      ended: (failure) => {
        client.avoid(connection, failure.message)
        ended.resolve({ kind: 'failed', text: failure.message })
      },
    })
    connection = opened.connection
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    opened.stream.send(encodeWatch(range, startRevision))
    const end = await ended.promise
    opened.stream.cancel()
    return end
  } catch (error) {
    if (error instanceof EtcdFailure) return { kind: 'failed', text: error.message }
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** An expired token makes a watch fail as "not permitted", so the next try logs in again. */
function canceledBy(client: EtcdClient, reason: string): WatchEnd {
  if (/permission denied|auth token/.test(reason)) client.forgetLogin()
  return { kind: 'failed', text: `etcd ended the watch: ${reason || 'no reason given'}` }
}
