// A registry in memory. It behaves well unless a test changes single responses.
import { hash } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'

interface Seen {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: http.IncomingHttpHeaders
  /** The part of the request body read so far. */
  body: Buffer
}

export interface BadRegistry {
  readonly server: string
  readonly port: number
  readonly blobs: Map<string, Buffer>
  /** By tag and by digest. */
  readonly manifests: Map<string, { readonly type: string; readonly bytes: Buffer }>
  readonly seen: Seen[]
  /** Returns true if it answered in place of the registry. Called before the body is read. */
  bend: (seen: Seen, response: http.ServerResponse, request: http.IncomingMessage) => boolean | Promise<boolean>
  /** Valid tokens. Undefined: none is needed. */
  tokens: Set<string> | undefined
  /** The requests for tokens, with their `Authorization`. */
  readonly tokenRequests: Seen[]
  issue: () => string
  tokenSeconds: number
  /** The number of requests without a valid token. */
  refused: number
  close(): Promise<void>
}

interface Upload {
  bytes: Buffer
  /** The upload's location changes after every piece. */
  turn: number
}

const digestOf = (bytes: Buffer) => `sha256:${hash('sha256', bytes)}`

export async function startBadRegistry({ port: wanted = 0 } = {}): Promise<BadRegistry> {
  const uploads = new Map<string, Upload>()
  const server = http.createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(wanted, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const registry: BadRegistry = {
    server: `http://127.0.0.1:${port}`,
    port,
    blobs: new Map(),
    manifests: new Map(),
    seen: [],
    bend: () => false,
    tokens: undefined,
    tokenRequests: [],
    issue: () => `token-canary-${registry.tokenRequests.length}`,
    tokenSeconds: 300,
    refused: 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }

  async function handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<boolean> {
    const url = new URL(request.url ?? '/', registry.server)
    const { method = '', headers } = request
    const seen: Seen = { method, path: url.pathname, query: url.searchParams, headers, body: Buffer.alloc(0) }
    if (url.pathname === '/token') return giveToken(seen, response)
    registry.seen.push(seen)
    if (await registry.bend(seen, response, request)) return true
    if (registry.tokens && !registry.tokens.has((headers.authorization ?? '').replace('Bearer ', ''))) {
      const challenge = `Bearer realm="${registry.server}/token",service="bad",scope="repository:x:pull"`
      request.resume()
      registry.refused += 1
      return reply(response, 401, { 'www-authenticate': challenge })
    }
    const pieces: Buffer[] = []
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece)
    seen.body = Buffer.concat(pieces)
    return route(seen, response)
  }

  function giveToken(seen: Seen, response: http.ServerResponse): true {
    registry.tokenRequests.push(seen)
    const token = registry.issue()
    registry.tokens?.add(token)
    return reply(response, 200, {}, Buffer.from(JSON.stringify({ token, expires_in: registry.tokenSeconds })))
  }

  function route(seen: Seen, response: http.ServerResponse): true {
    const { method, path } = seen
    if (path === '/v2/') return reply(response, 200)
    const [, name = '', kind = '', rest = ''] = /^\/v2\/(.+)\/(blobs|manifests)\/(.*)$/.exec(path) ?? []
    if (kind === 'manifests') return method === 'PUT' ? putManifest(seen, rest, response) : giveManifest(rest, response)
    if (rest.startsWith('uploads/')) return upload(seen, name, rest.slice('uploads/'.length), response)
    const blob = registry.blobs.get(rest)
    if (!blob) return reply(response, 404)
    const [, start] = /^bytes=(\d+)-/.exec(seen.headers.range ?? '') ?? []
    if (start === undefined)
      return reply(response, 200, { 'content-length': blob.length }, method === 'HEAD' ? undefined : blob)
    const part = blob.subarray(Number(start))
    return reply(response, 206, { 'content-range': `bytes ${start}-${blob.length - 1}/${blob.length}` }, part)
  }

  function giveManifest(reference: string, response: http.ServerResponse): true {
    const found = registry.manifests.get(reference)
    if (!found) return reply(response, 404, {}, Buffer.from('{"errors":[{"code":"MANIFEST_UNKNOWN"}]}'))
    return reply(response, 200, { 'content-type': found.type }, found.bytes)
  }

  function putManifest({ headers, body }: Seen, reference: string, response: http.ServerResponse): true {
    const manifest = { type: headers['content-type'] ?? '', bytes: body }
    registry.manifests.set(reference, manifest)
    registry.manifests.set(digestOf(body), manifest)
    return reply(response, 201, { 'docker-content-digest': digestOf(body) })
  }

  function upload(seen: Seen, name: string, place: string, response: http.ServerResponse): true {
    const { method, query, body } = seen
    const whereNow = (id: string, { turn }: Upload) => ({
      location: `/v2/${name}/blobs/uploads/${id}/${turn}?_state=secret-state`,
    })
    if (method === 'POST') {
      const mounted = query.get('mount')
      if (mounted !== null && registry.blobs.has(mounted)) return reply(response, 201)
      const id = `u${uploads.size}`
      const fresh = { bytes: Buffer.alloc(0), turn: 0 }
      uploads.set(id, fresh)
      return reply(response, 202, whereNow(id, fresh))
    }
    const [id = '', turn] = place.split('/')
    const known = uploads.get(id)
    if (!known || Number(turn) !== known.turn) return reply(response, 404)
    const range = { range: `0-${Math.max(0, known.bytes.length - 1)}` }
    if (method === 'GET') return reply(response, 204, { ...whereNow(id, known), ...range })
    const [, start = '0'] = /^(\d+)-/.exec(seen.headers['content-range'] ?? '') ?? []
    if (Number(start) !== known.bytes.length && body.length > 0)
      return reply(response, 416, { ...whereNow(id, known), ...range })
    known.bytes = Buffer.concat([known.bytes, body])
    known.turn += 1
    if (method === 'PATCH')
      return reply(response, 202, { ...whereNow(id, known), range: `0-${known.bytes.length - 1}` })
    const digest = digestOf(known.bytes)
    uploads.delete(id)
    if (digest !== query.get('digest'))
      return reply(response, 400, {}, Buffer.from('{"errors":[{"code":"DIGEST_INVALID"}]}'))
    registry.blobs.set(digest, known.bytes)
    return reply(response, 201, { 'docker-content-digest': digest })
  }

  return registry
}

export function reply(
  response: http.ServerResponse,
  status: number,
  headers: Readonly<Record<string, string | number>> = {},
  body?: Buffer,
): true {
  response.writeHead(status, { ...(body && { 'content-length': body.length }), ...headers }).end(body)
  return true
}

/** Sends part of a body and breaks the connection. */
export function truncate(response: http.ServerResponse, body: Buffer, bytes: number): true {
  response.writeHead(200, { 'content-length': body.length })
  response.write(body.subarray(0, bytes), () => response.socket?.destroy())
  return true
}
