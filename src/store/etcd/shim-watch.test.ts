// A watch behind a shim counts only once two changes of our own have come through it.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { EtcdClient } from './client.ts'
import type { Connection, StreamListener } from './connection.ts'
import { readSoundWatch } from './shim-watch.ts'
import { message, messageField, numberField } from './wire.ts'

const event = (revision: number): Buffer => messageField(11, messageField(2, numberField(3, revision)))
const changes = (...revisions: number[]): Buffer => message(...revisions.map(event))
const progress = (revision: number): Buffer => messageField(1, numberField(3, revision))

/** A shim whose answers are given by hand, to a watch that is begun. */
function begin(signal: AbortSignal) {
  let listener: StreamListener | undefined
  const opened = Promise.withResolvers<StreamListener>()
  const client = {
    avoid: () => undefined,
    stream: async (_: string, given: StreamListener) => {
      listener = given
      return { connection: {} as Connection, stream: { send: () => opened.resolve(given), cancel: () => undefined } }
    },
  } as unknown as EtcdClient
  const syncs: PromiseWithResolvers<number>[] = [Promise.withResolvers(), Promise.withResolvers()]
  let asked = 0
  const seen: (string | number)[] = []
  const ended = readSoundWatch(
    {
      client,
      range: { key: Buffer.from('/') },
      newest: async () => 4,
      sync: () => syncs[asked++]?.promise ?? Promise.reject(new Error('asked too often')),
      begun: (revision) => seen.push(`begun ${revision}`),
      deliver: (events) => seen.push(...events.map(({ kv }) => kv.modRevision)),
    },
    signal,
  )
  return { opened: opened.promise, say: (body: Buffer) => listener?.message(body), syncs, seen, ended }
}

it('what comes before the second change is left to the past, and progress counts for nothing', async () => {
  const stop = new AbortController()
  const { opened, say, syncs, seen, ended } = begin(stop.signal)
  await opened
  // 6 is not committed yet: the shim never brings it.
  say(changes(5, 7))
  syncs[0]?.resolve(7)
  // After everything that the first change lets happen.
  await new Promise(setImmediate)
  say(changes(8))
  say(progress(12))
  syncs[1]?.resolve(9)
  await new Promise(setImmediate)
  assert.deepEqual(seen, [])
  say(changes(9, 10))
  await new Promise(setImmediate)
  say(progress(13))
  say(changes(11, 12))
  assert.deepEqual(seen, ['begun 10', 11, 12])
  stop.abort()
  assert.deepEqual(await ended, { kind: 'stopped' })
})

it('a change that cannot be made ends it, and says why', async () => {
  const { syncs, seen, ended } = begin(new AbortController().signal)
  syncs[0]?.reject(new Error('the database is away'))
  assert.deepEqual(await ended, { kind: 'failed', text: 'the database is away' })
  assert.deepEqual(seen, [])
})
