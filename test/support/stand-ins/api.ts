// A stand-in for the service in tests of the command line: real HTTP, the shapes of src/api, credentials in memory.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RegistryCredential, RegistryCredentialInput } from '../../../src/api/access/registry-credentials.ts'
import { ApiError, notFound, success } from '../../../src/api/errors.ts'

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface FakeService extends AsyncDisposable {
  readonly apiUrl: string
  readonly token: string
  /** By namespace and server. */
  readonly stored: Map<string, RegistryCredential>
  /** The passwords as they arrived, by server. */
  readonly passwords: Map<string, string>
  readonly requests: Seen[]
  /** Other responses, by path. */
  readonly pages: Map<string, unknown>
  /** Answers every request if set. */
  override: ((request: Seen, response: ServerResponse) => void) | undefined
}

const at = '2026-11-15T09:00:00Z'
const base = '/api/v1/namespaces/'

export async function startFakeService(token = 'test-token-1234'): Promise<FakeService> {
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const { method = '', url: path = '', headers } = incoming
    const seen: Seen = { method, path, headers, body: Buffer.concat(chunks).toString('utf8') }
    service.requests.push(seen)
    if (service.override) return service.override(seen, response)
    try {
      const [status, body] = answer(service, seen)
      send(response, status, body)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      send(response, error.code, error.toStatus('request-1'))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const service: FakeService = {
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    stored: new Map(),
    passwords: new Map(),
    requests: [],
    pages: new Map(),
    override: undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return service
}

export function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function answer(service: FakeService, { method, path, headers, body }: Seen): [number, unknown] {
  if (path === '/api/v1/cluster-info') return [200, { version: '3.0.0-test' }]
  if (headers.authorization !== `Bearer ${service.token}`) throw new ApiError('Unauthorized', 'Unauthorized: bad token')
  if (method === 'GET' && service.pages.has(path)) return [200, service.pages.get(path)]
  if (`${method} ${path}` === 'GET /api/v1/namespaces') return [200, { items: [] }]
  const [namespace = '', ...rest] = path.slice(base.length).split('/')
  if (namespace === 'svc-missing') throw notFound('namespaces', namespace, { hint: 'List the namespaces' })
  if (namespace === 'svc-closed') throw new ApiError('Forbidden', 'only administrators manage registry credentials')
  const route = `${method} ${rest.join('/')}`
  if (route === 'GET secrets/registrycredentials') {
    const items = [...service.stored].filter(([key]) => key.startsWith(`${namespace} `)).map((entry) => entry[1])
    return [200, { items }]
  }
  if (method === 'GET') throw new ApiError('NotFound', 'Path not found')
  const input = JSON.parse(body) as RegistryCredentialInput
  const key = `${namespace} ${input.server}`
  const present = service.stored.get(key)
  if (route === 'POST secrets/registrycredentials/add') {
    if (present && !input.replace)
      throw new ApiError('AlreadyExists', `credentials for "${input.server}" exist`, { hint: 'use --replace' })
    const record = recordOf(input)
    service.stored.set(key, record)
    service.passwords.set(input.server, input.password)
    return [present ? 200 : 201, record]
  }
  if (!present) throw notFound('registrycredentials', input.server, { hint: 'List them' })
  service.stored.delete(key)
  return [200, success('removed', { kind: 'registrycredentials', name: input.server })]
}

export const recordOf = (
  input: Pick<RegistryCredentialInput, 'server' | 'username' | 'allowInsecure'>,
): RegistryCredential => ({
  server: input.server,
  name: input.server.replace(/^\w+:\/\//, ''),
  username: input.username,
  allowInsecure: input.allowInsecure ?? false,
  createdAt: at,
  updatedAt: at,
  updatedBy: 'admin',
  resourceVersion: '7',
})
