// Assembles a server from its store, keys, settings and folders: everything that serves requests, not listening yet and
// without controllers. Used by the control plane and by tests.
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createAccounts } from '../auth/accounts.ts'
import { BrowserSessions } from '../auth/login/browser-sessions.ts'
import { createNodeKeys } from '../auth/node-keys.ts'
import { createRoles } from '../auth/roles.ts'
import type { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys } from '../auth/signing-keys.ts'
import { createTokens, type Tokens } from '../auth/tokens.ts'
import { followRooms, type Rooms } from '../controllers/scheduling/rooms.ts'
import { WarmSlots } from '../controllers/scheduling/warm-slots.ts'
import type { ContentStore } from '../images/content/content.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { RetryPolicy } from '../platform/retry.ts'
import { createApp } from '../server/app.ts'
import type { Peers } from '../server/cluster/server-calls.ts'
import { StalenessGuard } from '../server/cluster/staleness-guard.ts'
import type { Settings } from '../server/config/settings.ts'
import { RateLimits } from '../server/gate/limits.ts'
import { beginEra, ensureDefaultNamespace } from '../server/gate/namespace.ts'
import { History } from '../server/http/history.ts'
import type { Metrics } from '../server/http/metrics.ts'
import { LegacyUsageCounter } from '../server/legacy/usage.ts'
import { NodeAuthority } from '../server/nodes/authority.ts'
import { createChunkHolders } from '../server/nodes/chunk-holders.ts'
import { createFleetServices } from '../server/nodes/nodes.ts'
import { createPeerTickets } from '../server/nodes/peer-tickets.ts'
import { openPartialFolder } from '../server/remotes/image-pulls.ts'
import { Remotes } from '../server/remotes/remotes.ts'
import { createOperations } from '../server/routes/index.ts'
import { Certificates } from '../server/tls/certificates.ts'
import { PartialUploads } from '../server/transfer/partial-uploads.ts'
import { RunningCaptures } from '../server/transfer/running-captures.ts'
import { Uploads } from '../server/transfer/uploads.ts'
import { Horizon } from '../store/horizon.ts'
import { type Collections, viewsOf } from '../store/records/collections.ts'
import type { VmRecord } from '../store/records/fleet-records.ts'
import type { Store } from '../store/store.ts'
import type { IdentityPart } from './identity.ts'

interface ServerInput {
  readonly store: Store
  readonly collections: Collections
  readonly secrets: Secrets
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly version: string
  /** Holds uploads, partial pulls, and the files that the settings name. */
  readonly dataFolder: string
  readonly consoleFolder: string
  readonly names: readonly string[]
  /** Serve plain HTTP as well; the API is then known by its plain address. */
  readonly plainHttp: boolean
  /** The content on the disk of this server, or in the registry of the cluster. */
  readonly ownContent: ContentStore
  /** As `ownContent`, with the content of other servers. */
  readonly contentAmong?: (peers: Peers | undefined) => ContentStore
  /** Returns why the image registry failed when it was last used. Undefined if images are in folders. */
  readonly imagesProblem?: (() => string | undefined) | undefined
  /** The identity provider. `apiUrl` is known once the server listens. */
  identity(apiUrl: () => string): Promise<IdentityPart>
  readonly join?:
    | ((own: { readonly tokens: Tokens; readonly certificates: Certificates }) => Promise<Peers>)
    | undefined
  /** How remotes are retried. Tests set it. */
  readonly remoteRetry?: RetryPolicy
}

export type Server = Awaited<ReturnType<typeof assembleServer>>

export async function assembleServer(input: ServerInput) {
  const { store, collections, secrets, settings, clock, log, dataFolder, ownContent } = input
  await using cleanup = new AsyncDisposableStack()
  await ensureDefaultNamespace({ collections, clock })
  const signingKeys = cleanup.use(await loadSigningKeys(collections.signingKeys, secrets, clock, keyNotOpened))
  const address: { apiUrl: string; kubernetesUrl: string | undefined } = { apiUrl: '', kubernetesUrl: undefined }
  const apiUrl = (): string => address.apiUrl
  const identity = await input.identity(apiUrl)
  const { isCurrent } = createAccounts(collections, identity.isCurrentUser)
  const tokens = createTokens(signingKeys, clock, isCurrent)
  const certificates = new Certificates({ collections, secrets, clock, log, names: input.names })
  // Other servers always call by HTTPS. The certificate is created now, because the store may be down later.
  if (!input.plainHttp || input.join) await certificates.current()

  const peers = await input.join?.({ tokens, certificates })
  if (!peers) await beginEra({ collections, clock })
  cleanup.defer(async () => {
    await peers?.servers.stop()
    peers?.calls.close()
  })
  const fleet = cleanup.use(createFleetServices({ collections, secrets, clock, log }, peers && { peers, store }))
  let followed: ReturnType<typeof followRooms> | undefined
  cleanup.defer(() => followed?.stop())
  const horizon = new Horizon(store, viewsOf(collections))
  const staleness = peers && store.exchange && new StalenessGuard({ ...peers, exchange: store.exchange, horizon, log })
  cleanup.defer(async () => void (await staleness?.stop()))
  const history = new History({ collections, clock })
  // Charts are flushed after the last request and before the store closes.
  cleanup.defer(() =>
    Promise.race([history.flush().catch(notKept(log, 'charts')), setTimeout(lastFlushMs, undefined, { ref: false })]),
  )
  cleanup.defer(() => history.stop())
  const legacyUsage = new LegacyUsageCounter(collections, clock)
  cleanup.defer(() => legacyUsage.flush().catch(notKept(log, 'usage of the 2.4.x API')))
  const partialFolder = await openPartialFolder(path.join(dataFolder, 'partial'))
  const stopping = new AbortController()
  const ending = new AbortController()
  const services = {
    ...input,
    apiUrl,
    kubernetesUrl: () => address.kubernetesUrl,
    ...identity,
    ...fleet,
    tokens,
    browserSessions: new BrowserSessions({
      collections,
      secrets,
      tokens,
      isCurrent,
      nameSecret: () => signingKeys.derive('browser sessions'),
      clock,
    }),
    roles: createRoles(collections),
    limits: new RateLimits(settings.limits),
    certificates,
    nodeKeys: createNodeKeys(signingKeys, clock),
    nodeAuthority: new NodeAuthority({ collections, secrets, clock, log }),
    requestSecret: () => signingKeys.derive('requests'),
    peerTickets: createPeerTickets(() => signingKeys.derive('peers'), clock),
    chunkHolders: createChunkHolders(clock),
    roomsIn: (namespace: string) => roomsNow().in(namespace),
    warmFor: (vm: Omit<VmRecord, 'name' | 'uid'>) => new WarmSlots(collections, roomsNow()).take(vm),
    peers,
    staleness,
    horizon: peers && horizon,
    content: input.contentAmong?.(peers) ?? ownContent,
    uploads: await Uploads.open(path.join(dataFolder, 'uploads')),
    partialFolder,
    partialUploads: new PartialUploads(partialFolder, clock),
    runningCaptures: new RunningCaptures(),
    remotes: await Remotes.open(settings.remotes, dataFolder, input.remoteRetry),
    history,
    legacyUsage,
    stopping: stopping.signal,
    ending: ending.signal,
  }
  const operations = createOperations(services)
  const app = createApp(services, operations)
  cleanup.defer(() => app.close())
  const running = cleanup.move()
  return Object.assign(services, {
    app,
    operations,
    signingKeys,
    /** The addresses for clients, set once the server listens. */
    address,
    /** Fails readiness and ends streams. */
    stop: () => stopping.abort(),
    /** Ends pending requests; later than `stop` if other servers can continue the work. */
    abort: () => ending.abort(),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  })

  function roomsNow(): Rooms {
    followed ??= followRooms(collections, fleet.presence)
    followed.rooms.look()
    return followed.rooms
  }

  function keyNotOpened(name: string, error: unknown): void {
    log.error('a signing key cannot be decrypted. Check that the master key is complete', { name }, error)
  }
}

/** Limits how long an unreachable store delays the stop. */
const lastFlushMs = 2_000

const notKept =
  (log: Log, what: 'charts' | 'usage of the 2.4.x API') =>
  (error: unknown): void =>
    log.error(`the ${what} could not be stored`, {}, error)
