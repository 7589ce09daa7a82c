// The whole API in this process for tests: real routes, tokens, sealing, any store, and a clock that the test sets.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { InjectOptions } from 'fastify'
import { exchangeToken } from '../../../src/api/access/tokens.ts'
import { ApiError } from '../../../src/api/errors.ts'
import { makeKeyring } from '../../../src/auth/keyring.ts'
import type { LoginIdentity } from '../../../src/auth/login/oidc.ts'
import type { Principal } from '../../../src/auth/principal.ts'
import type { LocalIssuer } from '../../../src/auth/provider/issuer.ts'
import { Secrets } from '../../../src/auth/secrets.ts'
import { assembleServer, type Server } from '../../../src/control-plane/assemble.ts'
import type { ContentStore } from '../../../src/images/content/content.ts'
import { openContentFolder as openContent } from '../../../src/images/content/store.ts'
import { createLog, type Level } from '../../../src/platform/log.ts'
import { parseSettings } from '../../../src/server/config/settings.ts'
import type { App } from '../../../src/server/gate/charges.ts'
import { createMetrics } from '../../../src/server/http/metrics.ts'
import { openApiDocument } from '../../../src/server/http/openapi.ts'
import { ownNames } from '../../../src/server/tls/own-names.ts'
import { openMemory } from '../../../src/store/memory.ts'
import { openCollections } from '../../../src/store/records/collections.ts'
import type { Store } from '../../../src/store/store.ts'

export interface TestService extends AsyncDisposable {
  readonly app: App
  readonly services: Server
  /** The address of the API; tests may change it. */
  apiUrl: string
  readonly clock: { nowMs: number; now(): Date }
  readonly logLines: string[]
  readonly adminToken: string
  readonly devToken: string
  tokenFor(principal: Principal): Promise<string>
  /** Listens on loopback, for tests that need a real connection. */
  listen(): Promise<string>
  /** A request with a JSON body and the administrator's token, another one, or none (null). */
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
    identity?: LoginIdentity
    consoleFolder?: string
    /** Wraps the content store of its folder. */
    content?: (own: ContentStore) => ContentStore
  } = {},
): Promise<TestService> {
  const store = options.store ?? openMemory()
  const clock = { nowMs: Date.parse('2026-11-15T09:00:00Z'), now: () => new Date(clock.nowMs) }
  const collections = await openCollections(store)
  const logLines: string[] = []
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-service-'))
  const ownContent = await openContent(path.join(folder, 'content'))
  const services = await assembleServer({
    store,
    collections,
    secrets: new Secrets(makeKeyring([randomBytes(32)])),
    settings: parseSettings(options.settings && JSON.stringify(options.settings)),
    clock,
    log: createLog(options.logLevel ?? 'debug', (line) => logLines.push(line)),
    metrics: createMetrics('0.0.0-test'),
    version: '0.0.0-test',
    dataFolder: folder,
    consoleFolder: options.consoleFolder ?? path.join(folder, 'console'),
    names: ownNames('127.0.0.1'),
    plainHttp: options.plainHttp ?? true,
    ownContent,
    contentAmong: () => options.content?.(ownContent) ?? ownContent,
    identity: async () => ({
      identity: options.identity ?? exampleIdentity,
      ...(options.localIssuer && { localIssuer: options.localIssuer }),
      isCurrentUser: () => true,
    }),
    remoteRetry: { attempts: 6, firstDelayMs: 10, maxDelayMs: 30_000 },
  })
  const { app, address, tokens } = services
  address.apiUrl = 'http://127.0.0.1:1'
  const stop = (): void => {
    services.stop()
    services.abort()
  }
  const tokenFor = async (principal: Principal): Promise<string> => (await tokens.issue(principal)).token
  const adminToken = await tokenFor({ kind: 'user', name: 'admin@example.com', admin: true })

  return {
    app,
    services,
    get apiUrl() {
      return address.apiUrl
    },
    set apiUrl(url) {
      address.apiUrl = url
    },
    clock,
    logLines,
    adminToken,
    devToken: await tokenFor({ kind: 'user', name: 'dev@example.com', admin: false }),
    tokenFor,
    listen: async () => {
      address.apiUrl = await app.listen({ host: '127.0.0.1', port: 0 })
      return address.apiUrl
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
    stop,
    [Symbol.asyncDispose]: async () => {
      stop()
      await services[Symbol.asyncDispose]()
      await collections[Symbol.asyncDispose]()
      await store.close()
      await fs.rm(folder, { recursive: true, force: true })
    },
  }
}

/** Knows the ID token in the API's example; real providers are in the tests of logging in. */
const exampleIdentity: LoginIdentity = {
  issuer: 'https://id.example.com',
  clientId: 'svc3-cli',
  async verify(idToken) {
    if (idToken === exchangeToken.example.body.idToken) return { kind: 'user', name: 'ada@example.com', admin: false }
    throw new ApiError('Unauthorized', 'Unauthorized: the token of the identity provider is invalid', {
      hint: 'log in',
    })
  },
}

async function inject(app: App, options: InjectOptions): Promise<Answer> {
  const { statusCode, headers, payload } = await app.inject(options)
  checkDocumented(String(options.method), String(options.url), statusCode)
  const isJson = String(headers['content-type'] ?? '').startsWith('application/json')
  return {
    status: statusCode,
    headers,
    text: payload,
    body: isJson && payload !== '' ? JSON.parse(payload) : undefined,
  }
}

export const credentialsPath = '/api/v1/namespaces/svc-default/secrets/registrycredentials'

/** Method and path → the statuses in the API document. */
const documented = Object.entries(openApiDocument('').paths as Record<string, Record<string, { responses: object }>>)
  // Literal parts before parameters, as in the router.
  .toSorted(([a], [b]) => a.split('{').length - b.split('{').length)
  .flatMap(([path, methods]) => {
    const form = new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
    return Object.entries(methods).map(([method, { responses }]) => ({
      method,
      form,
      path,
      statuses: Object.keys(responses),
    }))
  })

/** Every response has a status that the API document names. */
function checkDocumented(method: string, url: string, status: number): void {
  const path = url.split('?', 1)[0] ?? ''
  const operation = documented.find((each) => each.method === method.toLowerCase() && each.form.test(path))
  if (operation && !operation.statuses.includes(String(status)))
    assert.fail(`${method} ${operation.path} answers ${status}, which docs/openapi.json does not name`)
}
