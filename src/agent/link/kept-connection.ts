// The connection that an agent keeps to one server: a WebSocket whose messages are one or more lines of JSON. Messages
// of the server and answers to calls arrive, calls are sent.

import { parseJson } from '../../api/json.ts'
import { type AgentAnswer, connectAgent } from '../../api/nodes/agent-connection.ts'
import type { Trust } from '../../client/tls.ts'
import { dialMessages } from '../../client/tunnel.ts'
import { Calls } from './calls.ts'
import { notOpened } from './not-opened.ts'

export interface LineFollower {
  /** Takes the content of a line; undefined if it was not JSON. What it throws ends the connection. */
  take(value: unknown): void
  /** Called for everything that arrives. */
  heard(): void
}

interface KeptConnectionOptions {
  readonly baseUrl: string
  readonly token: string
  readonly trust: Trust | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Tests only. */
  readonly maxLineBytes?: number | undefined
  /** Called before anything arrives. */
  opened(calls: Calls): void
}

/** A server admits nodes one after the other, and 10,000 may be waiting. */
const openingMs = 20_000
/** Holds all VMs of a node, with their metadata and user data. V8 has no strings of more than 512 MiB. */
const defaultMaxLineBytes = 256 * 1024 * 1024
const tooLongCode = 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'

export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'

  constructor(maxBytes: number) {
    super(`a line is longer than ${Math.floor(maxBytes / 2 ** 20)} MiB (${maxBytes} bytes)`)
  }
}

/** Resolves when the connection is open. `end` settles when it ends, and rejects with what `take` threw. */
export async function openKeptConnection(
  { opened, maxLineBytes = defaultMaxLineBytes, ...target }: KeptConnectionOptions,
  { take, heard }: LineFollower,
): Promise<{ readonly end: Promise<void> }> {
  const end = Promise.withResolvers<void>()
  end.promise.catch(() => undefined)
  const dialled = { ...target, path: connectAgent.path, openingMs, maxBytes: maxLineBytes }
  try {
    await dialMessages(dialled, (messages) => {
      const calls = new Calls(target.baseUrl, messages.send)
      opened(calls)
      return {
        received(text) {
          try {
            heard()
            for (const line of text.split('\n').filter((each) => each !== '')) {
              const value = parseJson(line)
              if (isAnswer(value)) calls.answered(value)
              else take(value)
            }
          } catch (error) {
            end.reject(error)
            messages.close()
          }
        },
        closed(fault) {
          calls.lost()
          if (fault && 'code' in fault && fault.code === tooLongCode) end.reject(new LineTooLong(maxLineBytes))
          else end.resolve()
        },
      }
    })
    return { end: end.promise }
  } catch (error) {
    throw target.signal.aborted ? error : notOpened(target.baseUrl, error)
  }
}

const isAnswer = (value: unknown): value is AgentAnswer =>
  typeof value === 'object' && value !== null && 'type' in value && value.type === 'ANSWER'
