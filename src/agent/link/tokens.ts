// Tokens of a node. The node joins the cluster with a join token once; with its key it then gets tokens that expire soon,
// and renews them before they do or when a server refuses one.
import { ApiError } from '../../api/errors.ts'
import type { Client } from '../../client/client.ts'
import type { Log } from '../../platform/log.ts'
import { orAborted } from '../../platform/retry.ts'
import { type AgentToken, isUnauthorized, type NodeIdentity } from './identity.ts'

interface NodeTokensOptions {
  readonly identity: NodeIdentity
  readonly joinToken?: (() => Promise<string>) | undefined
  /** Replaces the key of a node that has joined. */
  readonly renewKey?: boolean
  /** Returns a client without a token for the address in use. */
  client(): Client
  readonly log: Log
}

const never = new AbortController().signal

export class NodeTokens {
  readonly #options: NodeTokensOptions
  #token: AgentToken | undefined
  #renewal: Promise<AgentToken> | undefined

  constructor(options: NodeTokensOptions) {
    this.#options = options
  }

  /** Joins if the node has not joined yet, and replaces its key if requested. Throws if the cluster refuses. */
  async join(signal: AbortSignal): Promise<void> {
    const { identity, joinToken, renewKey, client, log } = this.#options
    if (identity.uid === undefined) return this.#join(signal)
    if (!renewKey) return
    try {
      await identity.renewKey(client(), signal)
      log.info('the node has a new key; the old one no longer works', { node: identity.name })
    } catch (error) {
      if (isUnauthorized(error) && joinToken) return this.#join(signal)
      if (!(error instanceof ApiError && error.code === 404)) throw error
      log.warn('the node keeps its key; upgrade the server first', { node: identity.name, address: client().baseUrl })
    }
  }

  /** Runs the work with a token. After a refusal, repeats it with a new one, because the server may have new keys. */
  async use<T>(signal: AbortSignal, work: (token: string) => Promise<T>): Promise<T> {
    const token = await this.#current(signal)
    try {
      return await work(token)
    } catch (error) {
      if (!isUnauthorized(error)) throw error
      if (this.#token?.token === token) this.#token = undefined
      return work(await this.#current(signal))
    }
  }

  async #current(signal: AbortSignal): Promise<string> {
    if (this.#token && performance.now() < this.#token.renewAtMs) return this.#token.token
    // Without the signal of the caller, because others wait for the same renewal.
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined
    })
    this.#token = await orAborted(this.#renewal, signal)
    return this.#token.token
  }

  async #renew(): Promise<AgentToken> {
    const { identity, joinToken, client } = this.#options
    try {
      return await identity.issueToken(client(), never)
    } catch (error) {
      // The node was removed from the cluster, and joins again if it has a join token.
      if (!isUnauthorized(error) || !joinToken) throw error
      await this.#join(never)
      return identity.issueToken(client(), never)
    }
  }

  async #join(signal: AbortSignal): Promise<void> {
    const { identity, joinToken, client, log } = this.#options
    const { name: node, uid: before } = identity
    const token = await joinToken?.()
    const address = client().baseUrl
    if (!token)
      throw new ApiError('Unauthorized', `Node ${node} has not joined the cluster at ${address} yet`, {
        hint: 'Create a join token with svc3 node join-token and start the agent with --join-token-file FILE',
      })
    await identity.join(client(), token, signal)
    log.info('joined the cluster', { node, address })
    if (before !== undefined && before !== identity.uid)
      log.warn('this host joined as a new node; VMs of the old node are kept', { node })
  }
}
