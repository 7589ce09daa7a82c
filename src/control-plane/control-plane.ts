// Puts the control plane together: store, keys, tokens, API, controllers. `svc3 dev` runs it beside the nodes.
import { randomUUID } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createAccounts } from '../auth/accounts.ts'
import { type Keyring, loadKeyring, saveKeyring, takeKeySource } from '../auth/keyring.ts'
import { createBrowserSessions } from '../auth/login/browser-sessions.ts'
import { createNodeKeys } from '../auth/node-keys.ts'
import { createRoles } from '../auth/roles.ts'
import { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys } from '../auth/signing-keys.ts'
import { createTokens } from '../auth/tokens.ts'
import { collectImages } from '../controllers/collect-images.ts'
import { expireUploads } from '../controllers/expire-uploads.ts'
import { startLeadership } from '../controllers/leadership.ts'
import { replicateImages } from '../controllers/replicate-images.ts'
import { roomsNow } from '../controllers/rooms.ts'
import { collect } from '../images/collect.ts'
import { type Rotation, resealAll } from '../operator/reseal.ts'
import { systemClock } from '../platform/clock.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { createLog } from '../platform/log.ts'
import type { Loop } from '../platform/loop.ts'
import { createApp } from '../server/app.ts'
import { Sight } from '../server/cluster/staleness-guard.ts'
import { createLimits } from '../server/gate/limits.ts'
import { beginEra, ensureDefaultNamespace } from '../server/gate/namespace.ts'
import { clusterState } from '../server/http/cluster-state.ts'
import { cutOff, untilNoticed } from '../server/http/drain.ts'
import { createHistory } from '../server/http/history.ts'
import { createMetrics } from '../server/http/metrics.ts'
import { forgetUploads } from '../server/images/store.ts'
import { LegacyUsage } from '../server/legacy/usage.ts'
import { NodeAuthority } from '../server/nodes/authority.ts'
import { Deliveries } from '../server/nodes/deliveries.ts'
import { createFleetServices } from '../server/nodes/nodes.ts'
import { createPeerTickets } from '../server/nodes/peer-tickets.ts'
import { openPartialFolder } from '../server/remotes/image-pulls.ts'
import { Remotes } from '../server/remotes/remotes.ts'
import type { Services } from '../server/services.ts'
import { parseSettings } from '../server/settings.ts'
import { Certificates } from '../server/tls/certificates.ts'
import { ownNames } from '../server/tls/own-names.ts'
import { PartialUploads } from '../server/transfer/partial-uploads.ts'
import { Uploads } from '../server/transfer/uploads.ts'
import { Horizon } from '../store/horizon.ts'
import { measured } from '../store/measured.ts'
import { openStore } from '../store/open.ts'
import { openCollections, sealedOf, viewsOf } from '../store/records/collections.ts'
import { assertUsable } from '../store/store-state.ts'
import { checkoutFolder } from './checkout.ts'
import { removeConnection } from './connection.ts'
import { openIdentity } from './identity.ts'
import {
  addressOfImages,
  clusterUid,
  collectableIn,
  namesContent,
  openImagePlace,
  settleImagePlace,
} from './image-place.ts'
import { startLeaderLoops } from './leader-loops.ts'
import { handleRequest } from './operator-requests.ts'
import type { ControlPlane, ControlPlaneOptions } from './plane.ts'
import { internalAddress, openSharing, present, replicasIn, settlePresence, sharedContent } from './sharing.ts'
import { checkPlace, isShared, writePlace } from './store-place.ts'
import { keepLegacyUsage, renewCertificate, tendSigningKeys, usageNotKept } from './upkeep.ts'
import { version } from './version.ts'

export type { ControlPlane, ControlPlaneOptions } from './plane.ts'

/** Where there are other servers, nobody waits for this one: deployments under way may be let finish. */
const drainSeconds = { alone: 10, shared: 60 }

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
    images,
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
  await checkPlace(dataFolder, storeAddress)
  const store = measured(await openStore(storeAddress, (text) => log.warn(text)), metrics.store)
  // The data is ours from here on: what a killed process said about itself is not true any more.
  await removeConnection(dataFolder)
  cleanup.defer(() => store.close())
  await assertUsable(store)
  if (isShared(storeAddress)) await writePlace(dataFolder, storeAddress)
  const collections = cleanup.use(await openCollections(store))

  const keySource = takeKeySource(dataFolder, environment)
  const secrets = new Secrets(
    await loadKeyring(
      keySource,
      sealedOf(collections).every(({ view }) => view.size === 0),
    ),
  )
  await settleKeys()
  await ensureDefaultNamespace({ collections, clock })
  const placeOptions = { given: images, settings: settings.images, environment, dataFolder, log, clock }
  const imagePlace = await openImagePlace(placeOptions)
  cleanup.defer(() => imagePlace.close())
  const { content: ownContent, registry } = imagePlace
  const uploads = await Uploads.open(path.join(dataFolder, 'uploads'))
  const deliveries = new Deliveries()
  const remotes = await Remotes.open(settings.remotes, dataFolder)
  const partialFolder = await openPartialFolder(path.join(dataFolder, 'partial'))
  const partialUploads = new PartialUploads(partialFolder, clock)
  const signingKeys = cleanup.use(await loadSigningKeys(collections.signingKeys, secrets, clock, keyNotOpened))
  const identity = await openIdentity({
    dataFolder,
    isShared: isShared(storeAddress),
    settings,
    collections,
    secrets,
    clock,
    log,
    apiUrl: () => services.apiUrl,
  })
  const accounts = createAccounts(collections, identity.isCurrentUser)
  const tokens = createTokens(signingKeys, clock, accounts.isCurrent)
  const { isCurrent } = accounts
  const browserSessions = createBrowserSessions({ collections, secrets, tokens, isCurrent, clock })

  const certificates = new Certificates({ collections, secrets, clock, log, names: ownNames(host, publicUrl) })
  if (!plainHttp) await certificates.current()
  const peers = isShared(storeAddress)
    ? await openSharing({ dataFolder, collections, tokens, certificates, clock, log })
    : undefined
  if (!peers) await beginEra({ collections, clock })
  await settleImagePlace(imagePlace, {
    store,
    address: addressOfImages(placeOptions),
    cluster: clusterUid(collections),
    isInUse: namesContent(collections) || peers?.isFirst === false,
    log,
  })
  cleanup.defer(async () => {
    await peers?.servers.stop()
    peers?.calls.close()
  })
  const content = peers && !registry ? sharedContent(ownContent, peers, log) : ownContent
  await forgetUploads(collections, (server) => peers === undefined || server === peers.servers.id)
  const stopping = new AbortController()
  const ending = new AbortController()
  const fleetServices = cleanup.use(
    createFleetServices({ collections, secrets, clock, log }, peers && { peers, store }),
  )
  const history = createHistory({ collections, clock })
  cleanup.defer(() => history.stop())
  const horizon = new Horizon(store, viewsOf(collections))
  const sight = peers && new Sight({ ...peers, horizon, log })
  cleanup.defer(async () => void (await sight?.stop()))
  const services: Services = {
    store,
    ...(isShared(storeAddress) && { horizon }),
    sight,
    collections,
    secrets,
    tokens,
    browserSessions,
    consoleFolder: path.join(checkoutFolder(), 'dist', 'console'),
    roomsIn: roomsNow(collections.nodes, fleetServices.presence),
    history,
    roles: createRoles(collections),
    certificates,
    ...identity,
    ...fleetServices,
    peers,
    content,
    ownContent,
    ...(registry && { imagesProblem: registry.content.problem }),
    uploads,
    deliveries,
    remotes,
    partialFolder,
    partialUploads,
    nodeKeys: createNodeKeys(signingKeys, clock),
    nodeAuthority: new NodeAuthority({ collections, secrets, clock, log }),
    requestSecret: () => signingKeys.derive('requests'),
    peerTickets: createPeerTickets(() => signingKeys.derive('peers'), clock),
    legacyUsage: new LegacyUsage(collections, clock),
    limits: createLimits(settings),
    clock,
    log,
    metrics,
    settings,
    version,
    stopping: stopping.signal,
    ending: ending.signal,
    plainHttp,
    apiUrl: '',
  }
  // After the last request, before the store closes.
  cleanup.defer(() => services.legacyUsage.flush().catch(usageNotKept(log)))
  const app = createApp(services)
  cleanup.defer(() => app.close())
  const localUrl = apiAddress(await app.listen({ host, port }), plainHttp)
  services.apiUrl = publicUrl ?? localUrl
  await peers?.servers.start(
    { internalUrl: internalAddress(internalUrl, host, localUrl), apiUrl: services.apiUrl },
    () => settlePresence(services),
  )
  sight?.start()
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
  const { imagesProblem } = services
  metrics.tellState(clusterState({ store, collections, imagesProblem, isLeading: () => leading.isLeading() }))
  const ownLoops = [
    ...(registry ? [] : [collecting()]),
    expireUploads(services, partialUploads),
    keepLegacyUsage(services.legacyUsage, log),
    ...(peers && !registry ? [replicateImages(services, replicasIn(content, peers.servers))] : []),
  ]
  const running = cleanup.move()

  return {
    apiUrl: services.apiUrl,
    localUrl,
    consoleUrl: settings.console.enabled ? `${services.apiUrl}${settings.console.pathPrefix}/console/` : undefined,
    certificates,
    log,
    tokens,
    browserSessions,
    nodeKeys: services.nodeKeys,
    collections,
    localUsers: identity.localUsers,
    failed: store.failed,
    isLeading: () => leading.isLeading(),
    handleRequest: (request) => {
      const { source } = keySource
      return handleRequest(
        {
          dataDir: dataFolder,
          content: ownContent,
          keySource: source,
          store,
          collections,
          secrets,
          signingKeys,
          announced,
        },
        request,
      )
    },
    stop: async (hurry) => {
      const { noticeSeconds = options.noticeSeconds ?? 0, requestSeconds } = settings.shutdown
      stopping.abort()
      // Nobody else brings to its end what they wait for.
      if ((peers?.servers.others() ?? []).length === 0) ending.abort()
      const noticed = untilNoticed(noticeSeconds * 1_000, hurry)
      await Promise.all([leading.stop(), ...ownLoops.map((loop) => loop.stop()), noticed])
      const patience = requestSeconds ?? drainSeconds[isShared(storeAddress) ? 'shared' : 'alone']
      using _late = cutOff(app, ending, patience * 1_000)
      await running.disposeAsync()
    },
  }

  function startControllers(): () => Promise<void> {
    return startLeaderLoops(services, [
      renewCertificate(certificates, log),
      tendSigningKeys(signingKeys, log),
      ...(registry ? [collecting()] : []),
    ])
  }

  /** Of a folder, each server for itself; of a registry, one for all. */
  function collecting(): Loop {
    return collectImages(services, {
      content: registry
        ? collectableIn(registry, () => clusterUid(collections))
        : { collect: (manifests, options) => collect(ownContent, () => present(content, manifests()), options) },
      sinceMs: () => Math.min(uploads.oldestStartMs(), deliveries.oldestStartMs()),
    })
  }

  function keyNotOpened(name: string, error: unknown): void {
    log.error('a signing key cannot be taken up: is it sealed under a master key that is not here?', { name }, error)
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

const saveTo = (file: string) => (ring: Keyring) => saveKeyring(file, ring)

/** An address to reach the service at: 0.0.0.0 is where it listens, not where it is. */
function apiAddress(address: string, plainHttp: boolean): string {
  const scheme = plainHttp ? 'http:' : 'https:'
  return address.replace('http:', scheme).replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
