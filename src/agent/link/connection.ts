// The connection to the server: one of several addresses, and a token that is renewed before it ends or when it is refused.
// One connection is kept; while it is there, calls go up it.
import type { Duplex } from 'node:stream'
import { ApiError } from '../../api/errors.ts'
import { type AgentAnswer, connectAgent, isCallable } from '../../api/nodes/agent-connection.ts'
import type { Operation, ResponseOf } from '../../api/operation.ts'
import { revisionHeader } from '../../api/revision.ts'
import { type CallInput, type Client, createClient } from '../../client/client.ts'
import { httpTransport } from '../../client/http.ts'
import { createRevision } from '../../client/revision.ts'
import type { Trust } from '../../client/tls.ts'
import { ConnectionError, type Transport, type TransportResponse } from '../../client/transport.ts'
import { dialMessages, dialTunnel } from '../../client/tunnel.ts'
import type { Log } from '../../platform/log.ts'
import { isTransient, orAborted } from '../../rules/retry.ts'
import type { Addresses } from './addresses.ts'
import { Calls } from './calls.ts'
import { type AgentToken, isUnauthorized, type NodeIdentity } from './identity.ts'
import { LineTooLong, valueOfLine } from './lines.ts'
import { notOpened } from './not-opened.ts'

export interface AgentConnection {
  /** The address in use. */
  readonly apiUrl: string
  /** What the cluster calls this node; empty before it has joined. */
  readonly nodeUid: string
  call<O extends Operation>(operation: O, input: CallInput<O>, signal: AbortSignal): Promise<ResponseOf<O>>
  open(operation: Operation, signal: AbortSignal): Promise<TransportResponse>
  /** Everything that the server has to say, until it ends. Throws what `take` throws, or why it did not begin. */
  follow(listener: LineFollower, signal: AbortSignal): Promise<void>
  /** Calls up the kept connection that were not answered for too long fail. */
  giveUpLate(): void
  /** Sends a body that is at hand. */
  upload(
    operation: Operation,
    params: Readonly<Record<string, string>>,
    body: Buffer,
    signal: AbortSignal,
  ): Promise<void>
  dial(path: string, signal: AbortSignal): Promise<Duplex>
  /** Joins, when the node has not yet; gets it a new key, where that was asked for. Throws when it may not. */
  join(signal: AbortSignal): Promise<void>
  /** The address in use does not work: takes the next one. */
  turn(): void
  /** A server has sent a record of this revision: whichever server is called next must have it. */
  saw(revision: string | undefined): void
}

export interface LineFollower {
  /** A line; undefined where it was not JSON. */
  take(value: unknown): void
  /** Something came. */
  heard(): void
}

interface ConnectionOptions {
  readonly addresses: Addresses
  readonly identity: NodeIdentity
  readonly joinToken?: (() => Promise<string>) | undefined
  /** A node that has joined gets another key first. */
  readonly renewKey?: boolean
  readonly trust?: Trust | undefined
  readonly version: string
  readonly log: Log
  /** How many calls may be under way; the others wait. */
  readonly maxSockets?: number
  /** Of its own where left out, because its stream holds a connection. */
  readonly transport?: Transport
  /** Tests only: of one line. */
  readonly maxLineBytes?: number
}

const callTimeoutMs = 15_000
const never = new AbortController().signal
/** A server lets one node in after the other, and 10,000 may want to. */
const openingMs = 20_000
/** Holds all VMs of a node, with their metadata and user data. V8 has no strings of more than 512 MiB. */
const longestLineBytes = 256 * 1024 * 1024

export function createConnection(options: ConnectionOptions): AgentConnection {
  const { addresses, identity, joinToken, log } = options
  const { maxSockets = 4, trust, maxLineBytes = longestLineBytes } = options
  const transport = options.transport ?? httpTransport({ maxSockets, trust })
  // Of all addresses together: the next server is not to know less than the last one did.
  const revision = createRevision()
  let current = addresses.all[0] ?? ''
  let known: AgentToken | undefined
  let renewing: Promise<AgentToken> | undefined

  const urlOf = (): string => current
  /** The last one: mostly address and token stay. */
  let made: { readonly baseUrl: string; readonly token: string | undefined; readonly client: Client } | undefined
  const clientWith = (token?: string): Client => {
    const baseUrl = urlOf()
    if (made?.baseUrl === baseUrl && made.token === token) return made.client
    const userAgent = `svc3-agent/${options.version}`
    const retry = { attempts: 2 }
    const client = createClient({ baseUrl, transport, token, revision, userAgent, timeoutMs: callTimeoutMs, retry })
    made = { baseUrl, token, client }
    return client
  }

  const join = async (signal: AbortSignal): Promise<void> => {
    const token = await joinToken?.()
    if (!token)
      throw new ApiError('Unauthorized', `Node ${identity.name} has not joined the cluster at ${urlOf()} yet`, {
        hint: 'Create a join token with svc3 node join-token and start the agent with --join-token-file FILE',
      })
    const before = identity.uid
    await identity.join(clientWith(), token, signal)
    log.info('joined the cluster', { node: identity.name, address: urlOf() })
    if (before !== undefined && before !== identity.uid)
      log.warn('this host joined as a new node; VMs of the old node are kept', {
        node: identity.name,
      })
  }

  const renew = async (signal: AbortSignal): Promise<AgentToken> => {
    try {
      return await identity.issueToken(clientWith(), signal)
    } catch (error) {
      // The node was removed from the cluster: who may still join, does.
      if (!isUnauthorized(error) || !joinToken) throw error
      await join(signal)
      return identity.issueToken(clientWith(), signal)
    }
  }

  const token = async (signal: AbortSignal): Promise<string> => {
    if (known && performance.now() < known.renewAtMs) return known.token
    // Everybody waits for it: whoever asked first may leave.
    renewing ??= renew(never).finally(() => {
      renewing = undefined
    })
    known = await orAborted(renewing, signal)
    return known.token
  }

  /** A refused token is renewed once: the server may have new keys. */
  const withToken = async <T>(signal: AbortSignal, work: (token: string) => Promise<T>): Promise<T> => {
    const used = await token(signal)
    try {
      return await work(used)
    } catch (error) {
      if (!isUnauthorized(error)) throw error
      if (known?.token === used) known = undefined
      return work(await token(signal))
    }
  }

  /** Of the connection that is kept now. */
  let calls: Calls | undefined

  /** Resolves once it is open, to its end. */
  const keep = ({ take, heard }: LineFollower, signal: AbortSignal): Promise<{ readonly end: Promise<void> }> =>
    withToken(signal, async (token) => {
      const [baseUrl, seen] = [urlOf(), revision.latest()]
      const end = Promise.withResolvers<void>()
      end.promise.catch(() => undefined)
      const headers = { ...(seen !== undefined && { [revisionHeader]: seen }) }
      const { path } = connectAgent
      const dialled = { baseUrl, path, token, signal, trust, headers, openingMs, maxBytes: maxLineBytes }
      try {
        await dialMessages(dialled, (messages) => {
          const own = new Calls(baseUrl, messages.send)
          calls = own
          const received = (text: string): void => {
            heard()
            for (const line of text.split('\n')) {
              const value = line === '' ? undefined : valueOfLine(line)
              if (isAnswer(value)) own.answered(value)
              else if (line !== '') take(value)
            }
          }
          return {
            received(text) {
              try {
                received(text)
              } catch (error) {
                end.reject(error)
                messages.close()
              }
            },
            closed(fault) {
              own.lost()
              if (calls === own) calls = undefined
              if (fault && 'code' in fault && fault.code === tooLongCode) end.reject(new LineTooLong(maxLineBytes))
              else end.resolve()
            },
          }
        })
        return { end: end.promise }
      } catch (error) {
        throw signal.aborted ? error : notOpened(baseUrl, error)
      }
    })

  return {
    get apiUrl() {
      return urlOf()
    },
    get nodeUid() {
      return identity.uid ?? ''
    },
    call: (operation, input, signal) =>
      // The input is the caller's, checked there; the signal is ours.
      ((isCallable(operation) ? calls?.call(operation, input.body, signal) : undefined) ??
        withToken(signal, (used) =>
          (clientWith(used).call as LooseCall)(operation, { ...input, signal }),
        )) as Promise<never>,
    async follow(listener, signal) {
      const { end } = await keep(listener, signal)
      await end
      signal.throwIfAborted()
    },
    giveUpLate: () => calls?.giveUp(performance.now() - callTimeoutMs),
    open: (operation, signal) => withToken(signal, (used) => clientWith(used).open(operation, { signal })),
    upload: (operation, params, body, signal) =>
      withToken(signal, async (used) => {
        const pieces = (async function* () {
          yield body
        })()
        await clientWith(used).upload(operation, { params, upload: { bytes: body.length, pieces }, signal })
      }),
    dial: (path, signal) =>
      withToken(signal, (used) => dialTunnel({ baseUrl: urlOf(), path, token: used, signal, trust: options.trust })),
    async join(signal) {
      if (identity.uid === undefined) return join(signal)
      if (!options.renewKey) return
      try {
        await identity.renewKey(clientWith(), signal)
        log.info('the node has a new key; the old one no longer works', { node: identity.name })
      } catch (error) {
        if (isUnauthorized(error) && joinToken) return join(signal)
        if (!(error instanceof ApiError && error.code === 404)) throw error
        log.warn('the node keeps its key; upgrade the server first', { node: identity.name, address: urlOf() })
      }
    },
    turn() {
      current = addresses.after(current)
    },
    saw(seen) {
      // Servers that do not share a store say no revision, and wait for none.
      if (revision.latest() !== undefined) revision.saw(seen)
    },
  }
}

const tooLongCode = 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'

const isAnswer = (value: unknown): value is AgentAnswer =>
  typeof value === 'object' && value !== null && 'type' in value && value.type === 'ANSWER'

type LooseCall = (operation: Operation, input: unknown) => Promise<unknown>

/** Whether a node goes on trying: it runs unattended, so it also waits for a server or an address to be repaired. */
export const isRetriable = (error: unknown): boolean =>
  isTransient(error) || error instanceof ConnectionError || (error instanceof ApiError && error.code >= 500)
