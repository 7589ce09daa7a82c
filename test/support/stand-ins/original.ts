// A stand-in for the original 3.x service: a proxy in front of a svc3 server that answers its documented endpoints only, without what
// only svc3 has: fields, ETags, digests, paging, revisions and, if told, ranges. Not the original: nothing here proves what that does.
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** The documented requests that a migration may use. */
const documented: readonly RegExp[] = [
  /^GET \/api\/v1\/namespaces$/,
  /^GET \/api\/v1\/namespaces\/[^/]+\/(serviceaccounts|nodes|images|isos|vmconfigs|vms|pushjobs)$/,
  /^GET \/api\/v1\/namespaces\/[^/]+\/(secrets\/registrycredentials|rolebindings\/orka-dev\/subjects)$/,
  /^GET \/api\/v1\/namespaces\/[^/]+\/(images|isos)\/[^/]+\/download$/,
  /^POST \/api\/v1\/namespaces\/[^/]+\/vms(\/[^/]+\/push)?$/,
  /^DELETE \/api\/v1\/namespaces\/[^/]+\/vms\/[^/]+$/,
]
const ours = ['resourceVersion', 'uid', 'createdAt', 'updatedAt', 'updatedBy', 'labels', 'checksum', 'os', 'version', 'versions', 'parent', 'protected', 'sourceNamespace', 'cordoned', 'checks', 'vms', 'maxVms', 'driver', 'continue', 'usedBy'] // biome-ignore format: a list
const keptHeaders = ['content-type', 'content-length', 'content-range', 'accept-ranges', 'content-disposition']

interface Original extends AsyncDisposable {
  readonly url: string
  /** Bytes of downloads so far. */
  downloadedBytes: number
  /** Whether downloads may begin in the middle. */
  hasRanges: boolean
  /** Called for each request, before it is forwarded; a promise delays it. */
  onRequest: ((line: string) => Promise<void> | undefined) | undefined
}

export async function startOriginal(target: string): Promise<Original> {
  const sockets = new Set<Socket>()
  const server = http.createServer(async (request, response) => {
    const path = (request.url ?? '').replace(/\?.*/, '')
    const line = `${request.method} ${path}`
    if (!documented.some((form) => form.test(line))) {
      const body = JSON.stringify({ message: `${line} is not documented`, code: 404, reason: 'NotFound' })
      return void response.writeHead(404, { 'content-type': 'application/json' }).end(body)
    }
    await original.onRequest?.(line)
    const { authorization, range } = request.headers
    const headers = {
      ...(authorization && { authorization }),
      ...(range && original.hasRanges && { range }),
      ...(request.headers['content-type'] && { 'content-type': request.headers['content-type'] }),
    }
    const onward = http.request(target + path, { method: request.method, headers, agent: false }, async (answer) => {
      const kept = Object.entries(answer.headers).filter(([name]) => keptHeaders.includes(name))
      if (!/json/.test(answer.headers['content-type'] ?? '')) {
        response.writeHead(answer.statusCode ?? 502, Object.fromEntries(kept))
        answer.on('data', (piece: Buffer) => {
          original.downloadedBytes += piece.length
        })
        return void answer.pipe(response)
      }
      let text = ''
      for await (const piece of answer) text += piece
      const body = text
        .replaceAll('svc-', 'orka-')
        .replace(/^.*$/s, (all) =>
          JSON.stringify(JSON.parse(all, (key, value) => (ours.includes(key) ? undefined : value))),
        )
      response.writeHead(answer.statusCode ?? 502, { 'content-type': 'application/json' }).end(body)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const original: Original = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    downloadedBytes: 0,
    hasRanges: true,
    onRequest: undefined,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return original
}
