// The stream: its messages, silence, ends and retries.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { readableLog } from '../../../test/support/tools/agent-log.ts'
import { ApiError } from '../../api/errors.ts'
import { parseJson } from '../../api/json.ts'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import { ConnectionError } from '../../client/transport.ts'
import type { AgentConnection } from './connection.ts'
import { type LineFollower, LineTooLong } from './kept-connection.ts'
import { ServerStream, type StreamOptions } from './stream.ts'

const hello = '{"type":"HELLO","vms":[],"spreadMs":0,"heartbeatSeconds":10}'

/** Each opening takes the next script: lines, after which the stream stays open, ends or fails. */
function rig(scripts: readonly (readonly (string | 'open' | Error)[])[], more: Partial<StreamOptions> = {}) {
  const { log, lines } = readableLog()
  const received: AgentMessage[] = []
  const refusals: number[] = []
  const openings: number[] = []
  const waiting: (() => void)[] = []
  const connection = {
    apiUrl: 'http://stand-in',
    turn: () => undefined,
    giveUpLate: () => undefined,
    async follow({ take, heard }: LineFollower, signal: AbortSignal) {
      const script = scripts[openings.length] ?? ['open']
      openings.push(performance.now())
      for (const wake of waiting.splice(0)) wake()
      if (script[0] instanceof Error) throw script[0]
      for (const part of script) {
        if (part instanceof Error) throw part
        if (part === 'open') await ended(signal)
        else {
          heard()
          take(parseJson(part))
        }
      }
      signal.throwIfAborted()
    },
  } as unknown as AgentConnection
  const stream = new ServerStream({
    connection,
    prepare: async () => undefined,
    received: (message) => void received.push(message),
    refused: (_error, times) => void refusals.push(times),
    log,
    random: () => 0,
    ...more,
  })
  const opened = async (count: number): Promise<void> => {
    while (openings.length < count) await new Promise<void>((resolve) => waiting.push(resolve))
  }
  return { stream, received, refusals, openings, opened, lines }
}

const ended = async (signal: AbortSignal): Promise<unknown> => signal.aborted || once(signal, 'abort')

describe("agent's stream", () => {
  it('unknown messages of a newer server are ignored', async () => {
    const { stream, received, opened } = rig([[hello, '{"type":"PING"}', '{"type":"NEWS"}'], ['open']])
    await opened(2)
    await stream.stop()
    assert.deepEqual(
      received.map(({ type }) => type),
      ['HELLO', 'PING', 'PING'],
    )
  })

  it('agents that lost their server together return over the time that it requested', async () => {
    const spread = hello.replace('"spreadMs":0', '"spreadMs":200')
    const refused = new Error('refused')
    const { stream, openings, opened } = rig([[spread], [refused], [refused], [spread, 'open']], { random: () => 0.5 })
    await opened(4)
    const waits = openings.slice(1).map((at, index) => at - (openings[index] ?? 0))
    // Half of the spread, plus three quarters of 100, 200 and 400 ms.
    assert.ok(
      waits.every((wait, index) => wait >= 100 + 75 * 2 ** index - 5),
      String(waits),
    )
    await stream.stop()
  })

  it('an attempt without an answer is a failure, however long it took', async () => {
    const { stream, openings, opened } = rig([[new Error('refused')], ['open'], ['open']], { lastingMs: 20 })
    await opened(2)
    await new Promise((resolve) => setTimeout(resolve, 60))
    const endedMs = performance.now()
    stream.check(1)
    await opened(3)
    // Half of 200 ms, which is the delay of the second attempt.
    const waitedMs = (openings[2] ?? 0) - endedMs
    assert.ok(waitedMs >= 95, String(waitedMs))
    await stream.stop()
  })

  it('an agent that a server told when to return does so, independent of the spread', {
    timeout: 60_000,
  }, async () => {
    const spread = hello.replace('"spreadMs":0', '"spreadMs":600000000')
    const turn = new ApiError('TooManyRequests', 'Many nodes are connecting', { retryAfterSeconds: 1 })
    const { stream, openings, opened } = rig([[spread], [turn], [spread, 'open']], { random: () => 0.5 })
    await opened(3)
    const waitedMs = (openings[2] ?? 0) - (openings[1] ?? 0)
    assert.ok(waitedMs >= 1_000, String(waitedMs))
    await stream.stop()
  })

  it('an agent reports before it is admitted, and afterwards if a server admitted it earlier', async () => {
    const order: string[] = []
    const conflict = new ApiError('Conflict', 'Node n has not reported yet')
    const busy = new ApiError('TooManyRequests', 'Many nodes are connecting')
    const { stream, opened } = rig([[hello], [busy], [hello], [conflict], [hello, 'open']], {
      prepare: async () => void order.push('report'),
      received: ({ type }) => void order.push(type),
    })
    await opened(5)
    await stream.stop()
    assert.deepEqual(order.slice(0, 6), ['report', 'HELLO', 'HELLO', 'report', 'report', 'HELLO'])
  })

  it('an agent whose report fails after it was admitted reports first the next time', async () => {
    const order: string[] = []
    const { stream, opened } = rig([[hello], [hello, 'open'], ['open']], {
      prepare: async () => {
        order.push('report')
        if (order.length === 4) throw new ApiError('NotFound', 'Node n not found')
      },
      received: ({ type }) => void order.push(type),
    })
    await opened(3)
    await stream.stop()
    assert.deepEqual(order, ['report', 'HELLO', 'HELLO', 'report', 'report'])
  })

  it("the agent's stream is opened again after increasing delays when it ends, fails or is invalid", async () => {
    const { stream, openings, opened } = rig([[hello], [hello, new Error('cut')], ['nonsense'], [hello, 'open']])
    await opened(4)
    const waits = openings.slice(1).map((at, index) => at - (openings[index] ?? 0))
    assert.ok(
      waits.every((wait, index) => wait >= 45 * 2 ** index),
      String(waits),
    )
    assert.ok(stream.isOpen || openings.length === 4)
    await stream.stop()
  })

  it("the agent's stream is closed when nothing arrived for three heartbeats", async () => {
    const { stream, opened } = rig([[hello, 'open'], ['open']])
    await opened(1)
    stream.check(60_000)
    // The stream may not have read the HELLO yet.
    const checking = setInterval(() => stream.check(1), 10)
    await opened(2)
    clearInterval(checking)
    assert.equal(stream.isOpen, false)
    await stream.stop()
  })

  it("the agent's stream logs an unreadable HELLO and a lost connection separately, once per outage", async () => {
    const received = (message: AgentMessage): void => {
      if (message.type === 'HELLO' && message.heartbeatSeconds === 11) throw new TypeError('kept is not iterable')
    }
    const bad = hello.replace('10', '11')
    const { stream, lines, opened } = rig([[bad], [bad], [bad], [hello], [bad], ['open']], { received })
    await opened(6)
    await stream.stop()
    const said = lines.map(({ level, message }) => `${level} ${message.split(';')[0]}`)
    assert.deepEqual(said, [
      'error the server sent an unusable message',
      'info connected to the server again',
      'warn no connection to the server',
      'error the server sent an unusable message',
    ])
    assert.match(lines[0]?.problem ?? '', /its list of VMs cannot be read \(kept is not iterable\)/)
  })

  it('an agent that refuses the certificate of its server logs what to do', async () => {
    const refused = new ConnectionError(
      'unusable',
      'https://a',
      'The certificate is signed by an unknown CA',
      'Use --ca FILE',
    )
    const { stream, lines, opened } = rig([[refused], ['open']])
    await opened(2)
    await stream.stop()
    assert.match(lines[0]?.problem ?? '', /unknown CA\. Use --ca FILE$/)
  })

  it('an agent logs what an operator has to change also after its server was down', async () => {
    const away = new ConnectionError('refused', 'http://a', 'Connection refused', 'Start the server')
    const wrong = new ConnectionError('unusable', 'http://a', 'The proxy did not pass it', 'Let it pass')
    const { stream, lines, opened } = rig([[away], [wrong], [away], [wrong], ['open']])
    await opened(5)
    await stream.stop()
    assert.deepEqual(
      lines.map(({ problem }) => problem),
      ['Connection refused', 'The proxy did not pass it. Let it pass'],
    )
  })

  it("the agent's stream continues after a message that fails, except HELLO", async () => {
    const types: string[] = []
    const received = ({ type }: AgentMessage): void => {
      types.push(type)
      if (type === 'VM') throw new Error('no')
    }
    const { stream, opened } = rig([[hello, '{"type":"VM"}', '{"type":"PING"}'], ['open']], { received })
    await opened(2)
    await stream.stop()
    assert.deepEqual(types, ['HELLO', 'VM', 'PING'])
  })

  it("the agent's stream logs that a message is too long", async () => {
    const { stream, lines, opened } = rig([[new LineTooLong(2 ** 21)], ['open']])
    await opened(2)
    await stream.stop()
    assert.match(lines[0]?.message ?? '', /reduce the VMs on this node/)
    assert.match(lines[0]?.problem ?? '', /longer than 2 MiB/)
  })

  it("the agent's stream is renewed on request, soon, without a log entry, and not often", async () => {
    const scripts = Array.from({ length: 3 }, () => [hello, 'open'])
    const isHeard = async (stream: ServerStream): Promise<void> => {
      while (!stream.isOpen) await new Promise(setImmediate)
    }
    // The first renewal is not delayed.
    const rare = rig(scripts, { renewEveryMs: 3_600_000 })
    await isHeard(rare.stream)
    rare.stream.renew()
    await rare.opened(2)
    await rare.stream.stop()

    const { stream, lines, openings, opened } = rig(scripts, { renewEveryMs: 300 })
    await isHeard(stream)
    const askedMs = performance.now()
    stream.renew()
    await opened(2)
    await isHeard(stream)
    for (let times = 0; times < 5; times++) stream.renew()
    await opened(3)
    await isHeard(stream)
    await stream.stop()
    const waitedMs = (openings[2] ?? 0) - askedMs
    assert.ok(waitedMs >= 290, `${waitedMs} ms`)
    assert.deepEqual([openings.length, lines, rare.lines], [3, [], []])
  })

  it("the agent's stream counts refusals of the node", async () => {
    const no = new ApiError('Unauthorized', 'no')
    const { stream, refusals, opened } = rig([[no], [no], [hello, 'open']])
    await opened(3)
    await stream.stop()
    assert.deepEqual(refusals, [1, 2])
  })
})
