// Puts the control plane together: store, keys, tokens, API, controllers. `svc3 dev` runs it beside the nodes.
import { randomUUID } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createAccounts } from '../auth/accounts.ts'
import { type Keyring, KeyringError, loadKeyring, saveKeyring, takeKeySource } from '../auth/keyring.ts'
import { createNodeKeys, type NodeKeys } from '../auth/node-keys.ts'
import { createRoles } from '../auth/roles.ts'
import { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys } from '../auth/signing-keys.ts'
import { createTokens, type Tokens } from '../auth/tokens.ts'
import { collectImages } from '../controllers/collect-images.ts'
import { collectNamespaces } from '../controllers/collect-namespaces.ts'
import { expireAnswers } from '../controllers/expire-answers.ts'
import { expireEvents } from '../controllers/expire-events.ts'
import { expireLogins } from '../controllers/expire-logins.ts'
import { expirePushJobs } from '../controllers/expire-push-jobs.ts'
import { expireUploads } from '../controllers/expire-uploads.ts'
import { expireVms } from '../controllers/expire-vms.ts'
import { forgetLeftovers } from '../controllers/forget-leftovers.ts'
import { startLeadership } from '../controllers/leadership.ts'
import { markNodes } from '../controllers/mark-nodes.ts'
import { pullImages } from '../controllers/pull-images.ts'
import { replicateImages } from '../controllers/replicate-images.ts'
import { scheduleVms } from '../controllers/schedule-vms.ts'
import { settleCaptures } from '../controllers/settle-captures.ts'
import { collect } from '../images/collect.ts'
import { openStore as openContent } from '../images/store.ts'
import { type Clock, systemClock } from '../platform/clock.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { createLog, type Log } from '../platform/log.ts'
import { startLoop } from '../platform/loop.ts'
import { createApp } from '../server/app.ts'
import { Certificates } from '../server/certificates.ts'
import { Deliveries } from '../server/deliveries.ts'
import { createFleetServices } from '../server/fleet-services.ts'
import { createPulls, openPartialFolder } from '../server/image-pulls.ts'
import { forgetUploads } from '../server/image-store.ts'
import { LegacyUsage } from '../server/legacy/usage.ts'
import { createLimits } from '../server/limits.ts'
import { createMetrics } from '../server/metrics.ts'
import { beginEra, ensureDefaultNamespace } from '../server/namespace.ts'
import { ownNames } from '../server/own-names.ts'
import { PartialUploads } from '../server/partial-uploads.ts'
import { createPeerTickets } from '../server/peer-tickets.ts'
import { Remotes } from '../server/remotes.ts'
import type { Services } from '../server/services.ts'
import { parseSettings } from '../server/settings.ts'
import { Uploads } from '../server/uploads.ts'
import { type Collections, openCollections } from '../store/collections.ts'
import { measured } from '../store/measured.ts'
import { openStore } from '../store/open.ts'
import { StoreError } from '../store/store.ts'
import { removeConnection } from './connection.ts'
import { type IdentityPart, openIdentity } from './identity.ts'
import { notOurs, type Rotation, resealAll, rotateKeyFile } from './reseal.ts'
import { internalAddress, openSharing, present, replicasIn, settlePresence, sharedContent } from './sharing.ts'
import { version } from './version.ts'

export interface ControlPlaneOptions {
  readonly dataFolder: string
  /** Where the records are, when that is not the data folder: an address for `openStore`. */
  readonly storeAddress?: string | undefined
  readonly host: string
  readonly port: number
  readonly environment: NodeJS.ProcessEnv
  /** Serve plain HTTP beside HTTPS; the API is then known by its plain address. */
  readonly plainHttp: boolean
  /** Where clients reach the API, when that is not where it listens. */
  readonly publicUrl?: string | undefined
  /** Where other servers on the same store reach this one, when that is not where it listens. */
  readonly internalUrl?: string | undefined
  /** Paths of 2.4.x are answered unless the settings say otherwise. */
  readonly legacy?: boolean | undefined
  readonly clock?: Clock
}

export interface ControlPlane {
  readonly apiUrl: string
  /** As `apiUrl`, for programs on this machine. */
  readonly localUrl: string
  readonly certificates: Certificates
  readonly log: Log
  readonly tokens: Tokens
  readonly nodeKeys: NodeKeys
  readonly collections: Collections
  readonly localUsers: IdentityPart['localUsers']
  /** Makes a new master key and seals everything under it. */
  rotateKey(): Promise<Rotation>
  /** Resolves when the store can never go on in this process: it has to be started again. */
  readonly failed: Promise<Error>
  /** Whether the controllers run here. */
  isLeading(): boolean
  /** Takes no new requests, ends streams, lets requests under way finish, closes the store. */
  stop(): Promise<void>
}

const drainMs = 10_000
const renewalCheckMs = 6 * 3_600_000
/** A kill loses what was counted since. */
const usageEveryMs = 15_000

export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const {
    dataFolder,
    storeAddress = `sqlite:${dataFolder}`,
    host,
    port,
    environment,
    plainHttp,
    publicUrl,
    internalUrl,
    legacy = false,
    clock = systemClock,
  } = options
  await using cleanup = new AsyncDisposableStack()
  await fs.mkdir(dataFolder, { recursive: true, mode: 0o700 })
  const given = parseSettings(await readFileIfPresent(path.join(dataFolder, 'config.json')))
  // Plain HTTP under another address means a proxy on this machine that ends TLS: it says who is calling.
  const isBehindProxy = plainHttp && publicUrl !== undefined && given.trustedProxies.length === 0
  const isLocal = plainHttp && publicUrl === undefined
  const settings = {
    ...given,
    ...(isBehindProxy && { trustedProxies: ['127.0.0.1', '::1'] }),
    legacy: { ...given.legacy, enabled: given.legacy.enabled ?? legacy },
    // Nobody but this machine reaches a service that is served in clear and has no other address.
    registries: { allowPrivate: isLocal, allowLoopback: isLocal, ...given.registries },
  }
  const log = createLog(settings.logLevel)
  const metrics = createMetrics(version)
  if (isShared(storeAddress) && (await readable(path.join(dataFolder, 'svc3.db'))))
    throw new StoreError(
      'Unavailable',
      `${dataFolder} has records of its own in svc3.db, which would not be seen: choose another folder with --data`,
    )
  const store = measured(await openStore(storeAddress, (text) => log.warn(text)), metrics.store)
  // The data is ours from here on: what a killed process said about itself is not true any more.
  await removeConnection(dataFolder)
  cleanup.defer(() => store.close())
  const collections = cleanup.use(await openCollections(store))

  const keySource = takeKeySource(dataFolder, environment)
  const secrets = new Secrets(await loadKeyring(keySource, sealedCount() === 0))
  await settleKeys()
  await ensureDefaultNamespace({ collections, clock })
  const ownContent = await openContent(path.join(dataFolder, 'content'))
  const uploads = await Uploads.open(path.join(dataFolder, 'uploads'))
  const deliveries = new Deliveries()
  const remotes = await Remotes.open(settings.remotes, dataFolder)
  const partialFolder = await openPartialFolder(path.join(dataFolder, 'partial'))
  const partialUploads = new PartialUploads(partialFolder, clock)
  const signingKeys = await loadSigningKeys(collections.signingKeys, secrets, clock)
  const identity = await openIdentity({
    dataFolder,
    settings,
    collections,
    secrets,
    clock,
    log,
    apiUrl: () => services.apiUrl,
  })
  const accounts = createAccounts(collections, identity.isCurrentUser)
  const tokens = createTokens(signingKeys, clock, accounts.isCurrent)

  const certificates = new Certificates({ collections, secrets, clock, log, names: ownNames(host, publicUrl) })
  if (!plainHttp) await certificates.current()
  const peers = isShared(storeAddress)
    ? await openSharing({ dataFolder, collections, tokens, certificates, clock, log })
    : undefined
  if (!peers) await beginEra({ collections, clock })
  cleanup.defer(async () => {
    await peers?.servers.stop()
    peers?.calls.close()
  })
  const content = peers ? sharedContent(ownContent, peers, log) : ownContent
  await forgetUploads(collections, (server) => peers === undefined || server === peers.servers.id)
  const stopping = new AbortController()
  const fleetServices = cleanup.use(
    createFleetServices({ collections, secrets, log }, peers && { peers, store, clock }),
  )
  const services: Services = {
    store,
    collections,
    secrets,
    tokens,
    roles: createRoles(collections),
    certificates,
    ...identity,
    ...fleetServices,
    peers,
    content,
    ownContent,
    uploads,
    deliveries,
    remotes,
    partialFolder,
    partialUploads,
    nodeKeys: createNodeKeys(signingKeys, clock),
    requestSecret: signingKeys.derive('requests'),
    peerTickets: createPeerTickets(signingKeys.derive('peers'), clock),
    legacyUsage: new LegacyUsage(collections, clock),
    limits: createLimits(settings),
    clock,
    log,
    metrics,
    settings,
    version,
    stopping: stopping.signal,
    plainHttp,
    apiUrl: '',
  }
  // After the last request, before the store closes.
  cleanup.defer(() => services.legacyUsage.flush().catch(usageNotKept))
  const app = createApp(services)
  cleanup.defer(() => app.close())
  const localUrl = apiAddress(await app.listen({ host, port }), plainHttp)
  services.apiUrl = publicUrl ?? localUrl
  await peers?.servers.start(
    { internalUrl: internalAddress(internalUrl, host, localUrl), apiUrl: services.apiUrl },
    () => settlePresence(services),
  )
  // What is about the records of all runs where the leader is; what is about this server's own files runs here.
  const leading = isShared(storeAddress)
    ? startLeadership({
        store,
        name: 'controllers',
        holder: `${new URL(localUrl).host}/${randomUUID()}`,
        lead: startControllers,
        log,
      })
    : { isLeading: () => true, stop: startControllers() }
  const ownLoops = [
    collectImages(services, {
      content: { collect: (manifests, options) => collect(ownContent, () => present(content, manifests()), options) },
      sinceMs: () => Math.min(uploads.oldestStartMs(), deliveries.oldestStartMs()),
    }),
    expireUploads(services, partialUploads),
    keepLegacyUsage(),
    ...(peers ? [replicateImages(services, replicasIn(content))] : []),
  ]
  const running = cleanup.move()

  return {
    apiUrl: services.apiUrl,
    localUrl,
    certificates,
    log,
    tokens,
    nodeKeys: services.nodeKeys,
    collections,
    localUsers: identity.localUsers,
    failed: store.failed,
    isLeading: () => leading.isLeading(),
    rotateKey: async () => {
      if (keySource.source.kind !== 'file') throw new KeyringError(notOurs(keySource.source.name))
      return announced(await rotateKeyFile(collections, secrets, keySource.source.file))
    },
    stop: async () => {
      stopping.abort()
      const late = setTimeout(() => app.server.closeAllConnections(), drainMs)
      await Promise.all([leading.stop(), ...ownLoops.map((loop) => loop.stop())])
      await running.disposeAsync()
      clearTimeout(late)
    },
  }

  function startControllers(): () => Promise<void> {
    const { presence } = services
    const scheduler = scheduleVms(services, presence)
    const unsubscribe = presence.subscribe(() => scheduler.nudge())
    const loops = [
      scheduler,
      expireVms(services),
      expirePushJobs(services),
      markNodes(services, presence),
      expireAnswers(services),
      expireEvents(services),
      expireLogins(services),
      collectNamespaces(services),
      settleCaptures(services),
      pullImages(services, createPulls(services)),
      forgetLeftovers(services, () => forgetUploads(collections, isGone)),
      renewCertificate(),
    ]
    return async () => {
      unsubscribe()
      await Promise.all(loops.map((loop) => loop.stop()))
    }
  }

  function isGone(server: string | undefined): boolean {
    return peers !== undefined && server !== undefined && !collections.servers.get('', server)
  }

  function sealedCount(): number {
    const { registryCredentials, signingKeys, issuerKeys, logins, certificates, vmSecrets } = collections
    return [registryCredentials, signingKeys, issuerKeys, logins, certificates, vmSecrets].reduce(
      (sum, each) => sum + each.list().length,
      0,
    )
  }

  function renewCertificate() {
    const failed = (error: unknown): void => log.error('the certificate could not be renewed', {}, error)
    return startLoop({ everyMs: renewalCheckMs, run: () => certificates.renew(), failed })
  }

  function usageNotKept(error: unknown): void {
    log.error('who calls paths of 2.4.x could not be written down', {}, error)
  }

  function keepLegacyUsage() {
    return startLoop({
      everyMs: usageEveryMs,
      isFirstLater: true,
      run: () => services.legacyUsage.flush(),
      failed: usageNotKept,
    })
  }

  /** Finishes a rotation that was begun, also one that a crash cut off. */
  async function settleKeys(): Promise<void> {
    const keepRing = keySource.source.kind === 'file' ? saveTo(keySource.source.file) : undefined
    announced(await resealAll(collections, secrets, keepRing))
  }

  /** Records that do not open are told loudly. */
  function announced(rotation: Rotation): Rotation {
    for (const { key, problem } of rotation.refused) log.error('a sealed record does not open', { name: key, problem })
    return rotation
  }
}

/** Other engines belong to one process, and nobody else can lead. */
const isShared = (storeAddress: string): boolean => storeAddress.startsWith('etcd:')

const readable = (file: string): Promise<boolean> =>
  fs.access(file).then(
    () => true,
    () => false,
  )

const saveTo = (file: string) => (ring: Keyring) => saveKeyring(file, ring)

/** An address to reach the service at: 0.0.0.0 is where it listens, not where it is. */
function apiAddress(address: string, plainHttp: boolean): string {
  const scheme = plainHttp ? 'http:' : 'https:'
  return address.replace('http:', scheme).replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
