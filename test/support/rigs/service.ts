// A whole API in this process for tests: real routes, tokens, sealing and a store of the test's choice, with a clock
// that the test turns.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { exchangeToken } from '../../../src/api/access/tokens.ts'
import { ApiError } from '../../../src/api/errors.ts'
import { createAccounts } from '../../../src/auth/accounts.ts'
import { makeKeyring } from '../../../src/auth/keyring.ts'
import { createBrowserSessions } from '../../../src/auth/login/browser-sessions.ts'
import type { Identity } from '../../../src/auth/login/oidc.ts'
import { createNodeKeys } from '../../../src/auth/node-keys.ts'
import type { Principal } from '../../../src/auth/principal.ts'
import type { LocalIssuer } from '../../../src/auth/provider/issuer.ts'
import { createRoles } from '../../../src/auth/roles.ts'
import { Secrets } from '../../../src/auth/secrets.ts'
import { loadSigningKeys } from '../../../src/auth/signing-keys.ts'
import { createTokens } from '../../../src/auth/tokens.ts'
import { roomsNow } from '../../../src/controllers/rooms.ts'
import type { ContentStore } from '../../../src/images/content.ts'
import { openStore as openContent } from '../../../src/images/store.ts'
import { createLog, type Level } from '../../../src/platform/log.ts'
import { createApp } from '../../../src/server/app.ts'
import { createLimits } from '../../../src/server/gate/limits.ts'
import { beginEra, ensureDefaultNamespace } from '../../../src/server/gate/namespace.ts'
import { createHistory } from '../../../src/server/http/history.ts'
import { createMetrics } from '../../../src/server/http/metrics.ts'
import { LegacyUsage } from '../../../src/server/legacy/usage.ts'
import { NodeAuthority } from '../../../src/server/nodes/authority.ts'
import { Deliveries } from '../../../src/server/nodes/deliveries.ts'
import { createFleetServices } from '../../../src/server/nodes/nodes.ts'
import { createPeerTickets } from '../../../src/server/nodes/peer-tickets.ts'
import { openPartialFolder } from '../../../src/server/remotes/image-pulls.ts'
import { Remotes } from '../../../src/server/remotes/remotes.ts'
import type { Services } from '../../../src/server/services.ts'
import { parseSettings } from '../../../src/server/settings.ts'
import { Certificates } from '../../../src/server/tls/certificates.ts'
import { ownNames } from '../../../src/server/tls/own-names.ts'
import { PartialUploads } from '../../../src/server/transfer/partial-uploads.ts'
import { Uploads } from '../../../src/server/transfer/uploads.ts'
import { openMemory } from '../../../src/store/memory.ts'
import { openCollections } from '../../../src/store/records/collections.ts'
import type { Store } from '../../../src/store/store.ts'

export interface TestService extends AsyncDisposable {
  readonly app: FastifyInstance
  readonly services: Services
  readonly clock: { nowMs: number; now(): Date }
  readonly logLines: string[]
  readonly adminToken: string
  readonly devToken: string
  tokenFor(principal: Principal): Promise<string>
  /** Listens on loopback, for what needs a real connection. */
  listen(): Promise<string>
  /** A request with a JSON body and the administrator's token, or another one (null: none). */
  call(method: string, url: string, options?: CallOptions): Promise<Answer>
  stop(): void
}

export interface CallOptions {
  readonly token?: string | null
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

export interface Answer {
  readonly status: number
  readonly headers: Record<string, string | string[] | number | undefined>
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any
}

export async function startService(
  options: {
    store?: Store
    settings?: object
    logLevel?: Level
    plainHttp?: boolean
    localIssuer?: LocalIssuer
    identity?: Identity
    consoleFolder?: string
    /** What it is to find content in, over what is in its folder. */
    content?: (own: ContentStore) => ContentStore
  } = {},
): Promise<TestService> {
  const store = options.store ?? openMemory()
  const clock = { nowMs: Date.parse('2026-11-15T09:00:00Z'), now: () => new Date(clock.nowMs) }
  const collections = await openCollections(store)
  const secrets = new Secrets(makeKeyring([randomBytes(32)]))
  await beginEra({ collections, clock })
  await ensureDefaultNamespace({ collections, clock })
  const signingKeys = await loadSigningKeys(collections.signingKeys, secrets, clock)
  const { isCurrent } = createAccounts(collections, () => true)
  const tokens = createTokens(signingKeys, clock, isCurrent)
  const logLines: string[] = []
  const stopping = new AbortController()
  const settings = parseSettings(options.settings && JSON.stringify(options.settings))
  const log = createLog(options.logLevel ?? 'debug', (line) => logLines.push(line))
  const fleetServices = createFleetServices({ collections, secrets, clock, log })
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-service-'))
  const partialFolder = await openPartialFolder(path.join(folder, 'partial'))
  const ownContent = await openContent(path.join(folder, 'content'))
  const history = createHistory({ collections, clock })
  const services: Services = {
    ...fleetServices,
    content: options.content?.(ownContent) ?? ownContent,
    ownContent,
    uploads: await Uploads.open(path.join(folder, 'uploads')),
    deliveries: new Deliveries(),
    remotes: await Remotes.open(settings.remotes, folder, 10),
    partialFolder,
    partialUploads: new PartialUploads(partialFolder, clock),
    nodeKeys: createNodeKeys(signingKeys, clock),
    nodeAuthority: new NodeAuthority({ collections, secrets, clock, log }),
    store,
    collections,
    secrets,
    tokens,
    browserSessions: createBrowserSessions({ collections, secrets, tokens, isCurrent, clock }),
    consoleFolder: options.consoleFolder ?? path.join(folder, 'console'),
    roomsIn: roomsNow(collections.nodes, fleetServices.fleet),
    history,
    roles: createRoles(collections),
    identity: options.identity ?? exampleIdentity,
    ...(options.localIssuer && { localIssuer: options.localIssuer }),
    requestSecret: () => signingKeys.derive('requests'),
    peerTickets: createPeerTickets(() => signingKeys.derive('peers'), clock),
    legacyUsage: new LegacyUsage(collections, clock),
    limits: createLimits(settings),
    clock,
    log,
    certificates: new Certificates({ collections, secrets, clock, log, names: ownNames('127.0.0.1') }),
    metrics: createMetrics('0.0.0-test'),
    settings,
    version: '0.0.0-test',
    stopping: stopping.signal,
    ending: stopping.signal,
    plainHttp: options.plainHttp ?? true,
    apiUrl: 'http://127.0.0.1:1',
  }
  const app = createApp(services)
  const tokenFor = async (principal: Principal): Promise<string> => (await tokens.issue(principal)).token
  const adminToken = await tokenFor({ kind: 'user', name: 'admin@example.com', admin: true })

  return {
    app,
    services,
    clock,
    logLines,
    adminToken,
    devToken: await tokenFor({ kind: 'user', name: 'dev@example.com', admin: false }),
    tokenFor,
    listen: async () => {
      services.apiUrl = await app.listen({ host: '127.0.0.1', port: 0 })
      return services.apiUrl
    },
    call: (method, url, { token = adminToken, body, headers = {} } = {}) =>
      inject(app, {
        method: method as 'GET',
        url,
        headers: {
          ...(token !== null && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && {
          payload: typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body),
        }),
      }),
    stop: () => stopping.abort(),
    [Symbol.asyncDispose]: async () => {
      stopping.abort()
      await app.close()
      history.stop()
      await fleetServices[Symbol.asyncDispose]()
      await collections[Symbol.asyncDispose]()
      await store.close()
      await fs.rm(folder, { recursive: true, force: true })
    },
  }
}

/** Knows the one ID token of the API's own example; real providers are in the tests of logging in. */
const exampleIdentity: Identity = {
  issuer: 'https://id.example.com',
  clientId: 'svc3-cli',
  async verify(idToken) {
    if (idToken === exchangeToken.example.body.idToken) return { kind: 'user', name: 'ada@example.com', admin: false }
    throw new ApiError('Unauthorized', 'Unauthorized: the identity provider’s token is not valid here', {
      hint: 'log in',
    })
  },
}

async function inject(app: FastifyInstance, options: InjectOptions): Promise<Answer> {
  const { statusCode, headers, payload } = await app.inject(options)
  const isJson = String(headers['content-type'] ?? '').startsWith('application/json')
  return {
    status: statusCode,
    headers,
    text: payload,
    body: isJson && payload !== '' ? JSON.parse(payload) : undefined,
  }
}

export const credentialsPath = '/api/v1/namespaces/svc-default/secrets/registrycredentials'
