// Starts and stops the control plane: records, keys, images, the server and the controllers.
import { randomUUID } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Keyring, loadKeyring, saveKeyring, takeKeySource } from '../auth/keyring.ts'
import { Secrets } from '../auth/secrets.ts'
import { startLeadership } from '../controllers/leadership.ts'
import { type Clock, systemClock } from '../platform/clock.ts'
import { watchEventLoop } from '../platform/event-loop.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { createLog, type Level, type Log } from '../platform/log.ts'
import { parseSettings, type Settings, SettingsError } from '../server/config/settings.ts'
import { cutOff, untilNoticed } from '../server/http/drain.ts'
import { createMetrics, type Metrics } from '../server/http/metrics.ts'
import { forgetUploads } from '../server/images/store.ts'
import { createKubernetesApp } from '../server/kubernetes/app.ts'
import { createMetricsApp } from '../server/metrics-app.ts'
import { ownNames } from '../server/tls/own-names.ts'
import { measured } from '../store/measured.ts'
import { openStore } from '../store/open.ts'
import { type Collections, openCollections, sealedOf } from '../store/records/collections.ts'
import { rewriteOldRecords } from '../store/records/old-records.ts'
import { assertUsable } from '../store/store-state.ts'
import { assembleServer, type Server } from './assemble.ts'
import { checkoutFolder } from './checkout.ts'
import { removeConnection } from './connection.ts'
import { type IdentityPart, openIdentity } from './identity.ts'
import { addressOfImages, clusterUid, namesContent, openImagePlace, settleImagePlace } from './image-place.ts'
import { startControllers, startOwnLoops } from './loops.ts'
import { mergeCredentials } from './merge-credentials.ts'
import type { OperatorRequest, RequestFile } from './operator-request.ts'
import { handleRequest } from './operator-requests.ts'
import { type Rotation, resealAll } from './reseal.ts'
import { internalAddress, openSharing, settlePresence, sharedContent } from './sharing.ts'
import { checkPlace, isShared, writePlace } from './store-place.ts'
import { version } from './version.ts'

export interface ControlPlaneOptions {
  readonly dataFolder: string
  /** An address for `openStore`. Default: the data folder. */
  readonly storeAddress?: string | undefined
  /** The registry for images, `oci://…`. Default: that of the settings, or the data folder. */
  readonly images?: string | undefined
  readonly host: string
  readonly port: number
  readonly environment: NodeJS.ProcessEnv
  /** Serve plain HTTP as well as HTTPS. The address for clients is then that of plain HTTP. */
  readonly plainHttp: boolean
  /** The address of the API for clients. Default: where it listens. */
  readonly publicUrl?: string | undefined
  /** The address for other servers on the same store. Default: where this one listens. */
  readonly internalUrl?: string | undefined
  /**
   * `svc3 dev`, for one person on this machine: paths of 2.4.x are answered, and registries on this machine and on
   * private networks are allowed, unless the settings say otherwise.
   */
  readonly isDev?: boolean | undefined
  /** The port for clients of Kubernetes. Default: none. */
  readonly kubernetes?: KubernetesListener | undefined
  readonly clock?: Clock
  /** How long load balancers have to notice that the server stops, unless the settings have a value. */
  readonly noticeSeconds?: number | undefined
}

export interface KubernetesListener {
  readonly host: string
  readonly port: number
  readonly isAnyPort?: boolean | undefined
  /** The address for clients. Default: where it listens. */
  readonly url?: string | undefined
}

export interface ControlPlane
  extends Pick<Server, 'certificates' | 'log' | 'tokens' | 'browserSessions' | 'nodeKeys' | 'collections'> {
  readonly apiUrl: string
  /** As `apiUrl`, for programs on this machine. */
  readonly localUrl: string
  readonly kubernetesUrl: string | undefined
  readonly consoleUrl: string | undefined
  readonly localUsers?: IdentityPart['localUsers'] | undefined
  readonly logLevel: Level
  handleRequest(request: OperatorRequest): Promise<NonNullable<RequestFile['answer']>>
  /** Resolves when the store has failed permanently and the process must be restarted. */
  readonly failed: Promise<Error>
  isLeading(): boolean
  /**
   * Fails readiness and ends streams, serves until load balancers have noticed, lets requests finish, and closes the
   * store. `expedite` skips the wait for load balancers.
   */
  stop(expedite?: AbortSignal): Promise<void>
}

/** How long pending requests may take when the server stops. Clients of a single server wait for its restart. */
const drainSeconds = { alone: 10, shared: 60 }

export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { dataFolder, storeAddress = `sqlite:${dataFolder}`, host, environment, plainHttp, publicUrl } = options
  const { clock = systemClock } = options
  await using cleanup = new AsyncDisposableStack()
  await fs.mkdir(dataFolder, { recursive: true, mode: 0o700 })
  const settings = await readSettings(options)
  const log = createLog(settings.logLevel)
  const metrics = createMetrics(version)
  cleanup.use(
    watchEventLoop((blockedMs) => {
      metrics.loopBlocked(blockedMs / 1_000)
      log.warn('event loop blocked', { durationMs: blockedMs })
    }),
  )
  const { store, collections } = await openRecords({ dataFolder, storeAddress, log, metrics }, cleanup)
  const { secrets, keySource } = await openKeys(options, collections, log)
  await mergeCredentials({ collections, secrets, log })
  const placeOptions = { address: options.images, settings: settings.images, environment, dataFolder, log, clock }
  const imagePlace = await openImagePlace(placeOptions)
  cleanup.defer(() => imagePlace.close())
  const { content: ownContent, registry } = imagePlace

  let isFirst = true
  const server = await assembleServer({
    store,
    collections,
    secrets,
    settings,
    clock,
    log,
    metrics,
    version,
    dataFolder,
    consoleFolder: path.join(checkoutFolder(), 'dist', 'console'),
    names: namesOf(options),
    plainHttp,
    ownContent,
    contentAmong: (peers) => (peers && !registry ? sharedContent(ownContent, peers, log) : ownContent),
    imagesProblem: registry?.content.problem,
    identity: (apiUrl) => openIdentity({ dataFolder, settings, collections, secrets, clock, log, apiUrl }),
    join: isShared(storeAddress)
      ? async (own) => {
          const sharing = await openSharing({ dataFolder, collections, clock, log, ...own })
          isFirst = sharing.isFirst
          return sharing
        }
      : undefined,
  })
  cleanup.use(server)
  const { app, peers, staleness } = server
  await settleImagePlace(imagePlace, {
    store,
    address: addressOfImages(placeOptions),
    cluster: clusterUid(collections),
    isInUse: namesContent(collections) || !isFirst,
    log,
  })
  await forgetUploads(collections, (id) => peers === undefined || id === peers.servers.id)

  const localUrl = apiAddress(await app.listen({ host, port: options.port }), plainHttp)
  const apiUrl = publicUrl ?? localUrl
  server.address.apiUrl = apiUrl
  const kubernetes = options.kubernetes && createKubernetesApp(server)
  if (kubernetes && options.kubernetes) {
    cleanup.defer(() => kubernetes.close())
    server.address.kubernetesUrl = await listenForKubernetes(kubernetes, options.kubernetes, publicUrl)
  }
  const { host: metricsHost, port: metricsPort } = settings.metrics
  if (metricsHost !== undefined) {
    const metricsApp = createMetricsApp(server)
    cleanup.defer(() => metricsApp.close())
    await metricsApp.listen({ host: metricsHost, port: metricsPort }).catch(({ message }: Error) => {
      throw new SettingsError(`Address of metrics in config.json: ${message}`)
    })
  }
  const internalUrl = internalAddress(options.internalUrl, host, localUrl)
  await peers?.servers.start({ internalUrl, apiUrl }, () => settlePresence(server))
  staleness?.start()

  // Controllers of shared records run on the leader; those of this server's own files run here.
  const lead = (term?: number): (() => Promise<void>) => startControllers(server, imagePlace, term)
  const holder = `${new URL(localUrl).host}/${randomUUID()}`
  const leading = isShared(storeAddress)
    ? startLeadership({ store, name: 'controllers', holder, lead, log })
    : { isLeading: () => true, stop: lead() }
  const isLeading = (): boolean => leading.isLeading()
  server.history.countsWhile(isLeading)
  metrics.observe({ ...server, isLeading })
  const ownLoops = startOwnLoops(server, imagePlace)
  const running = cleanup.move()

  return {
    ...server,
    apiUrl,
    localUrl,
    kubernetesUrl: server.address.kubernetesUrl,
    consoleUrl: settings.console.enabled ? `${apiUrl}${settings.console.pathPrefix}/console/` : undefined,
    logLevel: settings.logLevel,
    failed: store.failed,
    isLeading,
    handleRequest: (request) =>
      handleRequest(
        { ...server, dataDir: dataFolder, content: ownContent, keySource, announced: (made) => announced(made, log) },
        request,
      ),
    stop: async (expedite) => {
      const { noticeSeconds = options.noticeSeconds ?? 0, requestSeconds } = settings.shutdown
      server.stop()
      // Without another server, pending requests wait for work that stops with this one.
      if ((peers?.servers.others() ?? []).length === 0) server.abort()
      const noticed = untilNoticed(noticeSeconds * 1_000, expedite)
      await Promise.all([leading.stop(), ...ownLoops.map((loop) => loop.stop()), noticed])
      const drainMs = 1_000 * (requestSeconds ?? drainSeconds[isShared(storeAddress) ? 'shared' : 'alone'])
      using _late = cutOff(app, server.abort, drainMs)
      using _alsoLate = kubernetes && cutOff(kubernetes, server.abort, drainMs)
      await running.disposeAsync()
    },
  }
}

interface RecordsInput {
  readonly dataFolder: string
  readonly storeAddress: string
  readonly log: Log
  readonly metrics: Metrics
}

async function openRecords({ dataFolder, storeAddress, log, metrics }: RecordsInput, cleanup: AsyncDisposableStack) {
  await checkPlace(dataFolder, storeAddress)
  const store = measured(await openStore(storeAddress, (text) => log.warn(text)), metrics.store)
  // This process has locked the data, so a connection file is that of a killed process.
  await removeConnection(dataFolder)
  cleanup.defer(() => store.close())
  await assertUsable(store)
  await rewriteOldRecords(store)
  if (isShared(storeAddress)) await writePlace(dataFolder, storeAddress)
  return { store, collections: cleanup.use(await openCollections(store)) }
}

/** Loads the master keys, and finishes a rotation that a crash interrupted. */
async function openKeys(
  { dataFolder, environment }: Pick<ControlPlaneOptions, 'dataFolder' | 'environment'>,
  collections: Collections,
  log: Log,
) {
  const masterKey = takeKeySource(dataFolder, environment)
  const { source: keySource } = masterKey
  const hasSealed = sealedOf(collections).some(({ view }) => view.size > 0)
  const secrets = new Secrets(await loadKeyring(masterKey, !hasSealed))
  const keepRing = keySource.kind === 'file' ? (ring: Keyring) => saveKeyring(keySource.file, ring) : undefined
  announced(await resealAll(collections, secrets, keepRing), log)
  return { secrets, keySource }
}

const readSettings = async (options: ControlPlaneOptions): Promise<Settings> =>
  startedWith(parseSettings(await readFileIfPresent(path.join(options.dataFolder, 'config.json'))), options)

/** The settings of config.json, with defaults that depend on how the service is started. */
export function startedWith(
  settings: Settings,
  { plainHttp, publicUrl, isDev = false }: Pick<ControlPlaneOptions, 'plainHttp' | 'publicUrl' | 'isDev'>,
): Settings {
  // Plain HTTP under another address means a TLS proxy on this machine, whose X-Forwarded-For names the caller.
  const isBehindProxy = plainHttp && publicUrl !== undefined && settings.trustedProxies.length === 0
  return {
    ...settings,
    ...(isBehindProxy && { trustedProxies: ['127.0.0.1', '::1'] }),
    legacy: { ...settings.legacy, enabled: settings.legacy.enabled ?? isDev },
    registries: { allowPrivate: isDev, allowLoopback: isDev, ...settings.registries },
  }
}

function announced(rotation: Rotation, log: Log): Rotation {
  for (const { key, problem } of rotation.refused)
    log.error('a sealed record cannot be decrypted', { name: key, problem })
  return rotation
}

const namesOf = ({ host, publicUrl, kubernetes }: ControlPlaneOptions): readonly string[] => [
  ...new Set([...ownNames(host, publicUrl), ...(kubernetes ? ownNames(kubernetes.host, kubernetes.url) : [])]),
]

/** Returns the address for clients: at the host of the API, unless the options name another. */
async function listenForKubernetes(
  app: ReturnType<typeof createKubernetesApp>,
  { host, port, isAnyPort = false, url }: KubernetesListener,
  publicUrl: string | undefined,
): Promise<string> {
  const listen = (wanted: number): Promise<string> => app.listen({ host, port: wanted })
  const address = await listen(port).catch((error: NodeJS.ErrnoException) => {
    if (!isAnyPort || error.code !== 'EADDRINUSE') throw error
    return listen(0)
  })
  if (url !== undefined) return url
  const local = new URL(apiAddress(address, false))
  if (publicUrl !== undefined) local.hostname = new URL(publicUrl).hostname
  return local.origin
}

/** An address to connect to: 0.0.0.0 is only an address to listen on. */
function apiAddress(address: string, plainHttp: boolean): string {
  const scheme = plainHttp ? 'http:' : 'https:'
  return address.replace('http:', scheme).replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
