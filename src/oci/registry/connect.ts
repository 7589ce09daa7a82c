// Connections to places that others name (a registry, where it redirects to, its token service): every address is judged
// when it is resolved, in the lookup that the connection itself uses, so that a name cannot be one thing when it is
// checked and another when it is used.
import dns from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import tls from 'node:tls'
import { type AddressPolicy, isAllowedAddress } from '../../rules/address-kinds.ts'
import { RegistryError } from '../artifact/errors.ts'

export interface ConnectOptions {
  /** The same for every host, or by host: one that an administrator named may be where others may not lead to. */
  readonly policy: AddressPolicy | ((host: string) => AddressPolicy)
  /** PEM of an authority to trust beside the usual ones. */
  readonly ca?: string | undefined
  readonly maxSockets?: number | undefined
  /** In place of the system's resolver, for tests. */
  readonly lookup?: net.LookupFunction | undefined
}

export interface Connector {
  agentFor(url: URL): http.Agent
  close(): void
}

export function createConnector({ policy, ca, maxSockets = 16, lookup = systemLookup }: ConnectOptions): Connector {
  const policyOf = typeof policy === 'function' ? policy : () => policy
  const guarded = guardedLookup(policyOf, lookup)
  const pool = {
    keepAlive: true,
    keepAliveMsecs: 15_000,
    maxSockets: maxSockets,
    maxFreeSockets: maxSockets,
    scheduling: 'lifo',
  } as const
  const plain = guard(new http.Agent(pool), policyOf, guarded)
  const trust = ca === undefined ? {} : { ca: [...tls.getCACertificates('default'), ca] }
  const secure = guard(new https.Agent({ ...pool, ...trust }), policyOf, guarded)
  return {
    agentFor: (url) => (url.protocol === 'https:' ? secure : plain),
    close() {
      plain.destroy()
      secure.destroy()
    },
  }
}

/** An address that stands in the URL is never looked up, so it is judged here; a name is judged in its lookup. */
function guard<A extends http.Agent>(agent: A, policyOf: PolicyOf, lookup: net.LookupFunction): A {
  const create = agent.createConnection.bind(agent)
  agent.createConnection = (options, callback) => {
    const host = (options as { host?: string | null }).host ?? ''
    const address = host.replace(/^\[|\]$/g, '')
    if (net.isIP(address) === 0 || isAllowedAddress(address, policyOf(address)))
      return create({ ...options, lookup } as typeof options, callback)
    callback?.(refusedAddress(host), undefined as never)
    return undefined
  }
  return agent
}

type PolicyOf = (host: string) => AddressPolicy

const systemLookup: net.LookupFunction = dns.lookup

type LookupCallback = Parameters<net.LookupFunction>[2]

/** Passes on only what may be connected to. */
function guardedLookup(policyOf: PolicyOf, lookup: net.LookupFunction): net.LookupFunction {
  return (hostname, options, callback: LookupCallback) =>
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, [])
      const all = Array.isArray(found) ? found : [{ address: found, family: net.isIP(found) }]
      const allowed = all.filter(({ address }) => isAllowedAddress(address, policyOf(hostname)))
      const [first] = allowed
      if (first === undefined) return callback(refusedAddress(hostname), [])
      return options.all ? callback(null, allowed) : callback(null, first.address, first.family)
    })
}

const refusedAddress = (host: string): RegistryError => new RegistryError('address', `"${host}" has no allowed address`)
