// A folder of a web server for tests of remotes: an index, files, ranges, and misbehaviour.
import { createHash } from 'node:crypto'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'

interface Served {
  readonly kind?: 'image' | 'iso'
  readonly type?: 'arm64' | 'amd64'
  readonly bytes: Buffer
  /** Replaces the item's entry in the index. */
  readonly index?: object
}

export interface RemoteFolder extends AsyncDisposable {
  readonly url: string
  readonly items: Map<string, Served>
  /** Replaces the index. */
  index: string | undefined
  /** Called before a file is sent; true if it answered. */
  trick: (request: IncomingMessage, response: ServerResponse, bytes: Buffer) => boolean
  /** Requested ranges of files in order; '' for whole files. */
  readonly ranges: string[]
}

export async function startRemote(tls?: { cert: string; key: string }): Promise<RemoteFolder> {
  const items = new Map<string, Served>()
  const ranges: string[] = []
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const name = decodeURIComponent((request.url ?? '').replace(/^\/folder\//, ''))
    if (name === 'index.json') return void response.end(folder.index ?? indexOf(items))
    const { bytes } = items.get(name) ?? {}
    if (!bytes) return void response.writeHead(404).end()
    ranges.push(request.headers.range ?? '')
    if (folder.trick(request, response, bytes)) return
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
    const part = { 'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}` }
    response.writeHead(start > 0 ? 206 : 200, { ...(start > 0 && part), 'content-length': bytes.length - start })
    response.end(bytes.subarray(start))
  }
  const server = tls ? https.createServer(tls, answer) : http.createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const folder: RemoteFolder = {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/folder/`,
    items,
    ranges,
    index: undefined,
    trick: () => false,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return folder
}

const indexOf = (items: ReadonlyMap<string, Served>): string =>
  JSON.stringify({
    version: 1,
    items: [...items].map(([name, { kind = 'image', type = 'amd64', bytes, index }]) => ({
      kind,
      name,
      type,
      size: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
      file: name,
      ...index,
    })),
  })
