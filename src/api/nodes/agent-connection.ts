// The connection that an agent keeps, a WebSocket whose messages are lines of JSON: those of its stream down, calls of
// operations up, their answers down. Beside it are requests: to join, for tokens and content, and where none is open.
import * as t from 'typebox'
import { base, type Operation, operation } from '../operation.ts'

/** A line up. */
export interface AgentCall {
  /** Of the agent's choosing; the answer has it too. */
  readonly id: number
  /** Its id in the table. */
  readonly operation: string
  readonly body?: unknown
}

/** A line down, beside the messages of the stream: what an HTTP request would have been answered. */
export interface AgentAnswer {
  readonly type: 'ANSWER'
  readonly id: number
  readonly status: number
  readonly body?: unknown
  readonly retryAfterSeconds?: number
}

/** Whether it may be called by a line: said twice it changes nothing more, and it is all in its body. */
export const isCallable = ({ allow, isIdempotent, path, method, isUpload }: Operation): boolean =>
  allow === 'agent' && isIdempotent === true && method === 'POST' && !isUpload && !path.includes('{')

/** On every answer in place of a WebSocket, refusals included: the Upgrade got here. For who looks whether a proxy passes it. */
export const upgradeHeader = 'svc3-upgrade'

/** In characters. Longer ones go by HTTP, where what is too long is refused by itself; here it ends the connection. */
export const longestCall = 2 ** 18

export const connectAgent = operation({
  id: 'connectAgent',
  noun: 'agent-connection',
  isUnpublished: true,
  method: 'GET',
  path: `${base}/agent/connection`,
  allow: 'agent',
  status: 101,
  summary: 'Keep a connection: the stream down, calls up',
  isUpgrade: true,
  response: t.String(),
  refuses: ['Conflict', 'ServiceUnavailable'],
  example: { response: '' },
})
