// Clients under load at the level of HTTP, everything that they were told, and a checker over the store's history: what
// was acknowledged happened, once; nothing happened twice, however often it was tried.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createNamespace, deleteNamespace } from '../../../src/api/access/namespaces.ts'
import { createClient } from '../../../src/client/client.ts'
import { httpTransport } from '../../../src/client/http.ts'
import { createRevision } from '../../../src/client/revision.ts'
import { type Change, changeKey, changeRev, compareRevs, isFault, type Store } from '../../../src/store/store.ts'
import { eventually } from './eventually.ts'

interface HttpLoad {
  readonly acknowledged: () => number
  /** The longest time without an acknowledged change since the last call. */
  takeLongestGapMs(): number
  /** Ends the clients, and checks everything. */
  finish(): Promise<{ readonly created: number; readonly deleted: number; readonly unknown: number }>
}

/** `store` is the same data by a connection of its own. */
export async function startHttpLoad(baseUrl: string, token: string, store: Store, name: string): Promise<HttpLoad> {
  const start = (await store.list('/namespaces/')).rev
  const stopping = new AbortController()
  const created = new Set<string>()
  const deleted = new Set<string>()
  /** Asked for, and never answered. */
  const unknown = new Set<string>()
  let lastMs = performance.now()
  let longestMs = 0
  const acknowledge = (set: Set<string>, namespace: string): void => {
    set.add(namespace)
    longestMs = Math.max(longestMs, performance.now() - lastMs)
    lastMs = performance.now()
  }

  const work = async (_: unknown, worker: number): Promise<void> => {
    const retry = { attempts: 8, firstDelayMs: 50, maxDelayMs: 1_000 }
    const transport = httpTransport()
    const client = createClient({ baseUrl, transport, token, retry, timeoutMs: 10_000, revision: createRevision() })
    for (let n = 0; !stopping.signal.aborted; n++) {
      const namespace = `svc-${name}-${worker}-${n}`
      try {
        // With one Idempotency-Key for all of its tries.
        await client.call(createNamespace, { body: { name: namespace } })
        acknowledge(created, namespace)
        if (n % 2 === 0) {
          await client.call(deleteNamespace, { params: { namespace } })
          acknowledge(deleted, namespace)
        }
      } catch {
        unknown.add(namespace)
      }
      // Others need the machine as well.
      await sleep(20)
    }
  }
  // From the start, because old changes are not kept for ever.
  const history: Change[] = []
  let reached = start
  const ended = new AbortController()
  const watching = (async () => {
    while (!ended.signal.aborted)
      try {
        for await (const batch of store.watch('/namespaces/', reached, ended.signal)) {
          if (!('type' in batch)) history.push(...batch)
          reached = 'type' in batch ? batch.rev : changeRev(batch.at(-1) as Change)
        }
      } catch (error) {
        // Only what may pass.
        if (!isFault(error, 'Unavailable')) throw error
        await sleep(20)
      }
  })()
  const working = Promise.all(Array.from({ length: 4 }, work))

  return {
    acknowledged: () => created.size + deleted.size,
    takeLongestGapMs: () => {
      const gapMs = Math.max(longestMs, performance.now() - lastMs)
      longestMs = 0
      return gapMs
    },
    async finish() {
      stopping.abort()
      await working
      const { rev } = await store.list('/namespaces/')
      await eventually(async () => assert.ok(compareRevs(reached, rev) >= 0), 30_000)
      ended.abort()
      await watching
      const count = (type: 'create' | 'delete', namespace: string): number =>
        history.filter((change) => kindOf(change) === type && changeKey(change) === `/namespaces/${namespace}`).length
      const present = new Set((await store.list('/namespaces/')).entries.map(({ key }) => key))
      for (const namespace of new Set([...created, ...unknown])) {
        const [creates, deletes] = [count('create', namespace), count('delete', namespace)]
        if (created.has(namespace))
          assert.equal(creates, 1, `${namespace} was acknowledged, and created ${creates} times`)
        assert.ok(creates <= 1 && deletes <= 1, `${namespace}: created ${creates} times, deleted ${deletes} times`)
        if (deleted.has(namespace)) assert.equal(deletes, 1, `${namespace} was deleted`)
        else if (!unknown.has(namespace)) assert.ok(present.has(`/namespaces/${namespace}`), `${namespace} is gone`)
      }
      return { created: created.size, deleted: deleted.size, unknown: unknown.size }
    },
  }
}

const kindOf = (change: Change): 'create' | 'update' | 'delete' =>
  change.type === 'delete' ? 'delete' : change.previous ? 'update' : 'create'
