// The stream: what comes in, what a silence or an end of it means, and how soon it is tried again.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import type { AgentMessage } from '../api/agent.ts'
import { ApiError } from '../api/errors.ts'
import type { TransportResponse } from '../client/transport.ts'
import { silentLog } from '../platform/log.ts'
import type { Connection } from './connection.ts'
import { LineTooLong, linesOf } from './lines.ts'
import { openStream } from './stream.ts'

const hello = '{"type":"HELLO","vms":[],"heartbeatSeconds":10}\n'

/** Each opening takes the next script: chunks, and then it stays open, ends, or fails. */
function rig(scripts: readonly (readonly (string | 'open' | Error)[])[]) {
  const received: AgentMessage[] = []
  const refusals: number[] = []
  const openings: number[] = []
  const waiting: (() => void)[] = []
  const connection = {
    apiUrl: 'http://stand-in',
    turn: () => undefined,
    async open(_operation: unknown, signal: AbortSignal) {
      const script = scripts[openings.length] ?? ['open']
      openings.push(performance.now())
      for (const wake of waiting.splice(0)) wake()
      if (script[0] instanceof Error) throw script[0]
      return { body: chunksOf(script, signal) } as unknown as TransportResponse
    },
  } as unknown as Connection
  const stream = openStream({
    connection,
    prepare: async () => undefined,
    received: (message) => void received.push(message),
    refused: (_error, times) => void refusals.push(times),
    log: silentLog,
    random: () => 0,
  })
  const opened = async (count: number): Promise<void> => {
    while (openings.length < count) await new Promise<void>((resolve) => waiting.push(resolve))
  }
  return { stream, received, refusals, openings, opened }
}

async function* chunksOf(script: readonly (string | Error)[], signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for (const part of script) {
    if (part instanceof Error) throw part
    if (part !== 'open') yield Buffer.from(part)
    else if (!signal.aborted) await once(signal, 'abort')
  }
}

describe('the stream', () => {
  it('is read line by line, however it is cut, and what a newer server says is passed over', async () => {
    const ping = '{"type":"PING"}\n'
    const { stream, received, opened } = rig([
      [hello.slice(0, 9), hello.slice(9) + ping, '{"type":"NEWS"}\n{"type'],
      ['open'],
    ])
    await opened(2)
    await stream.stop()
    assert.deepEqual(
      received.map(({ type }) => type),
      ['HELLO', 'PING', 'PING'],
    )
  })

  it('is opened again when it ends, fails, or makes no sense, after longer and longer waits', async () => {
    const { stream, openings, opened } = rig([[hello], [hello, new Error('cut')], ['nonsense\n'], [hello, 'open']])
    await opened(4)
    const waits = openings.slice(1).map((at, index) => at - (openings[index] ?? 0))
    assert.ok(
      waits.every((wait, index) => wait >= 45 * 2 ** index),
      String(waits),
    )
    assert.ok(stream.isOpen || openings.length === 4)
    await stream.stop()
  })

  it('is closed when nothing was heard for three heartbeats', async () => {
    const { stream, opened } = rig([[hello, 'open'], ['open']])
    await opened(1)
    stream.check(60_000)
    await new Promise((resolve) => setTimeout(resolve, 10))
    stream.check(1)
    await opened(2)
    assert.equal(stream.isOpen, false)
    await stream.stop()
  })

  it('counts how often the server did not know the node', async () => {
    const no = new ApiError('Unauthorized', 'no')
    const { stream, refusals, opened } = rig([[no], [no], [hello, 'open']])
    await opened(3)
    await stream.stop()
    assert.deepEqual(refusals, [1, 2])
  })
})

describe('lines', () => {
  it('have a bound', async () => {
    const chunks = async function* () {
      for (let i = 0; i < 10; i++) yield Buffer.alloc(100, 'x')
    }
    await assert.rejects(linesOf(chunks(), 500).next(), LineTooLong)
  })
})
