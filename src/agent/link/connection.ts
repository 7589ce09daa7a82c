// How a node reaches its cluster: by one of several addresses, with tokens that are renewed. One connection is kept open;
// while it is, calls use it instead of requests.
import type { Duplex } from 'node:stream'
import { ApiError } from '../../api/errors.ts'
import { isCallable } from '../../api/nodes/agent-connection.ts'
import type { Operation, ResponseOf } from '../../api/operation.ts'
import { revisionHeader } from '../../api/revision.ts'
import { type CallInput, type Client, createClient } from '../../client/client.ts'
import { httpTransport } from '../../client/http.ts'
import { createRevision } from '../../client/revision.ts'
import type { Trust } from '../../client/tls.ts'
import { ConnectionError, type Transport, type TransportResponse } from '../../client/transport.ts'
import { dialTunnel } from '../../client/tunnel.ts'
import type { Log } from '../../platform/log.ts'
import { isTransient } from '../../platform/retry.ts'
import type { Addresses } from './addresses.ts'
import type { Calls } from './calls.ts'
import type { NodeIdentity } from './identity.ts'
import { type LineFollower, openKeptConnection } from './kept-connection.ts'
import { NodeTokens } from './tokens.ts'

export interface AgentConnection {
  /** The address in use. */
  readonly apiUrl: string
  /** The cluster's id of this node; empty before it has joined. */
  readonly nodeUid: string
  call<O extends Operation>(operation: O, input: CallInput<O>, signal: AbortSignal): Promise<ResponseOf<O>>
  open(operation: Operation, signal: AbortSignal): Promise<TransportResponse>
  /** Keeps a connection and passes on what the server sends, until it ends. Throws what `take` throws, or why it did not open. */
  follow(listener: LineFollower, signal: AbortSignal): Promise<void>
  /** Fails calls on the kept connection that were not answered in time. */
  giveUpLate(): void
  upload(
    operation: Operation,
    params: Readonly<Record<string, string>>,
    body: Buffer,
    signal: AbortSignal,
  ): Promise<void>
  dial(path: string, signal: AbortSignal): Promise<Duplex>
  /** Joins if the node has not joined yet, and replaces its key if requested. Throws if the cluster refuses. */
  join(signal: AbortSignal): Promise<void>
  /** Continues with the next address, because the one in use does not work. */
  turn(): void
  /** Notes the revision of a record that a server has sent. The server that is called next must have it. */
  saw(revision: string | undefined): void
}

interface ConnectionOptions {
  readonly addresses: Addresses
  readonly identity: NodeIdentity
  readonly joinToken?: (() => Promise<string>) | undefined
  /** Replaces the key of a node that has joined. */
  readonly renewKey?: boolean
  readonly trust?: Trust | undefined
  readonly version: string
  readonly log: Log
  /** The number of concurrent calls; more wait. */
  readonly maxSockets?: number
  /** By default, each connection has its own transport. */
  readonly transport?: Transport
  /** Tests only. */
  readonly maxLineBytes?: number
}

const callTimeoutMs = 15_000

export function createConnection(options: ConnectionOptions): AgentConnection {
  const { addresses, identity, trust, maxSockets = 4, maxLineBytes } = options
  const transport = options.transport ?? httpTransport({ maxSockets, trust })
  // Shared by all addresses: the next server must not know less than the last one did.
  const revision = createRevision()
  const userAgent = `svc3-agent/${options.version}`
  const retry = { attempts: 2 }
  let apiUrl = addresses.all[0] ?? ''
  /** The calls of the kept connection. If that was lost, they accept no more. */
  let calls: Calls | undefined

  const clientWith = (token?: string): Client =>
    createClient({ baseUrl: apiUrl, transport, token, revision, userAgent, timeoutMs: callTimeoutMs, retry })
  const tokens = new NodeTokens({ ...options, client: clientWith })

  return {
    get apiUrl() {
      return apiUrl
    },
    get nodeUid() {
      return identity.uid ?? ''
    },
    call: (operation, input, signal) =>
      // Sound, because the caller's input was checked against the operation; only the signal is replaced.
      ((isCallable(operation) ? calls?.call(operation, input.body, signal) : undefined) ??
        tokens.use(signal, (token) =>
          (clientWith(token).call as LooseCall)(operation, { ...input, signal }),
        )) as Promise<never>,
    async follow(listener, signal) {
      const { end } = await tokens.use(signal, (token) => {
        const seen = revision.latest()
        const headers = seen === undefined ? {} : { [revisionHeader]: seen }
        const opened = (own: Calls): void => {
          calls = own
        }
        return openKeptConnection({ baseUrl: apiUrl, token, trust, headers, signal, maxLineBytes, opened }, listener)
      })
      await end
      signal.throwIfAborted()
    },
    giveUpLate: () => calls?.giveUp(performance.now() - callTimeoutMs),
    open: (operation, signal) => tokens.use(signal, (token) => clientWith(token).open(operation, { signal })),
    upload: (operation, params, body, signal) =>
      tokens.use(signal, async (token) => {
        const pieces = (async function* () {
          yield body
        })()
        await clientWith(token).upload(operation, { params, upload: { bytes: body.length, pieces }, signal })
      }),
    dial: (path, signal) => tokens.use(signal, (token) => dialTunnel({ baseUrl: apiUrl, path, token, signal, trust })),
    join: (signal) => tokens.join(signal),
    turn() {
      apiUrl = addresses.after(apiUrl)
    },
    saw(seen) {
      // Servers that do not share a store send no revision, and wait for none.
      if (revision.latest() !== undefined) revision.saw(seen)
    },
  }
}

type LooseCall = (operation: Operation, input: unknown) => Promise<unknown>

/** Whether a node tries again: it runs unattended, so it also waits until a server or an address is repaired. */
export const isRetriable = (error: unknown): boolean =>
  isTransient(error) || error instanceof ConnectionError || (error instanceof ApiError && error.code >= 500)
