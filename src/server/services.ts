// What handlers work with, put together once at the start.
import type { BrowserSessions } from '../auth/login/browser-sessions.ts'
import type { Identity } from '../auth/login/oidc.ts'
import type { NodeKeys } from '../auth/node-keys.ts'
import type { Principal } from '../auth/principal.ts'
import type { LocalIssuer } from '../auth/provider/issuer.ts'
import type { Roles } from '../auth/roles.ts'
import type { Secrets } from '../auth/secrets.ts'
import type { Tokens } from '../auth/tokens.ts'
import type { ContentStore } from '../images/content.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Candidate } from '../rules/placement.ts'
import type { Horizon } from '../store/horizon.ts'
import type { Collections } from '../store/records/collections.ts'
import type { VmRecord } from '../store/records/fleet-records.ts'
import type { Store } from '../store/store.ts'
import type { ServerCalls } from './cluster/server-calls.ts'
import type { Servers } from './cluster/servers.ts'
import type { Sight } from './cluster/staleness-guard.ts'
import type { Limits } from './gate/limits.ts'
import type { History } from './http/history.ts'
import type { Metrics } from './http/metrics.ts'
import type { ImageUses } from './images/uses.ts'
import type { LegacyUsage } from './legacy/usage.ts'
import type { NodeAuthority } from './nodes/authority.ts'
import type { Deliveries } from './nodes/deliveries.ts'
import type { Growth } from './nodes/desired.ts'
import type { Fleet } from './nodes/fleet.ts'
import type { FarNodes } from './nodes/node-relay.ts'
import type { PeerTickets } from './nodes/peer-tickets.ts'
import type { Presence } from './nodes/presence.ts'
import type { Tunnels } from './nodes/tunnels.ts'
import type { Waits } from './nodes/waits.ts'
import type { Remotes } from './remotes/remotes.ts'
import type { Settings } from './settings.ts'
import type { Certificates } from './tls/certificates.ts'
import type { PartialUploads } from './transfer/partial-uploads.ts'
import type { Uploads } from './transfer/uploads.ts'

/** The other servers on the same records, and how they are reached. */
export interface Peers {
  readonly servers: Servers
  readonly calls: ServerCalls
}

export interface Services {
  readonly store: Store
  /** How far this server is; only where several share the store. */
  readonly horizon?: Horizon
  readonly collections: Collections
  readonly secrets: Secrets
  readonly tokens: Tokens
  /** Browsers that are logged in. */
  readonly browserSessions: BrowserSessions
  /** Where the built console is, if it is built. */
  readonly consoleFolder: string
  readonly roles: Roles
  readonly identity: Identity
  /** Only without a provider of the organisation's own. */
  readonly localIssuer?: LocalIssuer
  readonly certificates: Certificates
  readonly nodeKeys: NodeKeys
  /** Vouches for the nodes of the cluster. */
  readonly nodeAuthority: NodeAuthority
  /** The agents that are connected to this server. */
  readonly fleet: Fleet
  /** Those that are connected to any. */
  readonly presence: Presence
  readonly farNodes: FarNodes
  /** Only where servers share a store. */
  readonly peers?: Peers | undefined
  /** Whether this server sees what the others do; only where there may be others. */
  readonly sight?: Sight | undefined
  readonly tunnels: Tunnels
  /** What the nodes of a namespace have free now, as the scheduler sees it. */
  readonly roomsIn: (namespace: string) => readonly Candidate[]
  /** What the charts of the last day show. */
  readonly history: History
  readonly growth: Growth
  /** For those who wait for a VM. */
  readonly waits: Waits<VmRecord>
  readonly imageUses: ImageUses
  readonly isoUses: ImageUses
  /** What images and ISOs are made of. */
  readonly content: ContentStore
  /** The part of it that is on the disk of this server. */
  readonly ownContent: ContentStore
  /** Why the registry with the images could not be reached when it was last asked; only where there is one. */
  readonly imagesProblem?: () => string | undefined
  readonly uploads: Uploads
  /** What nodes are sending. */
  readonly deliveries: Deliveries
  /** Where images and ISOs can be pulled from. */
  readonly remotes: Remotes
  /** Files that come in pieces and outlive a restart: pulls, and uploads that can go on. */
  readonly partialFolder: string
  readonly partialUploads: PartialUploads
  /** Keys the hashes of requests with an Idempotency-Key. */
  readonly requestSecret: () => Buffer
  /** What nodes that serve each other trust each other by. */
  readonly peerTickets: PeerTickets
  /** Who calls paths of 2.4.x. */
  readonly legacyUsage: LegacyUsage
  readonly limits: Limits
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly settings: Settings
  readonly version: string
  /** Aborted when the service begins to stop: streams end, readiness is withdrawn. */
  readonly stopping: AbortSignal
  /** Aborted when requests under way have to end: later than `stopping`, where other servers go on with the work. */
  readonly ending: AbortSignal
  /** Plain HTTP is served, too: the API is then known by its plain address. */
  readonly plainHttp: boolean
  /** Where the API answers, once it does. */
  apiUrl: string
}

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal | undefined
    namespace: string
  }
  interface FastifyContextConfig {
    /** The id of the operation that a route serves. */
    operation?: string
  }
}
