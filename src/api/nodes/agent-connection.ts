// The WebSocket that an agent keeps open to the server. Each message is a line of JSON. The server sends the desired state
// and answers to calls; the agent sends calls of operations. Agents use plain HTTP requests to join, for tokens and content,
// and while they have no connection.
import * as t from 'typebox'
import { base, type Operation, operation } from '../operation.ts'

/** A call of an operation by an agent. */
export interface AgentCall {
  /** Chosen by the agent and repeated in the answer. */
  readonly id: number
  /** The id of the operation. */
  readonly operation: string
  readonly body?: unknown
}

/** The answer to a call: what an HTTP response would contain. */
export interface AgentAnswer {
  readonly type: 'ANSWER'
  readonly id: number
  readonly status: number
  readonly body?: unknown
  readonly retryAfterSeconds?: number
}

/** Whether agents may call the operation over their connection: it is idempotent and has its input in the body. */
export const isCallable = ({ allow, isIdempotent, path, method, isUpload }: Operation): boolean =>
  allow === 'agent' && isIdempotent === true && method === 'POST' && !isUpload && !path.includes('{')

/**
 * Set on every response to an Upgrade request that does not open a WebSocket. Its presence proves that proxies on the way
 * pass the Upgrade header.
 */
export const upgradeHeader = 'svc3-upgrade'

/** In characters. Longer calls use HTTP, where only the request is refused; on the connection they would end it. */
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
