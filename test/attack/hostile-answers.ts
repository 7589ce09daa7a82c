// Answers of an HTTP server that became hostile: a registry, a web server, GitHub.
import type http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { digestOf } from '../../src/images/format/manifest.ts'
import { reply } from '../support/stand-ins/bad-registry.ts'

type HostileAnswer = (response: http.ServerResponse, path: string, port: number) => unknown

/** Writes for as long as the other side reads, `maxMb` at most. */
export async function endless(response: http.ServerResponse, piece: Buffer | string, maxMb = 64): Promise<void> {
  response.on('error', () => undefined)
  for (let bytes = 0; bytes < maxMb * 2 ** 20 && !response.destroyed; bytes += piece.length)
    if (!response.write(piece))
      await Promise.race([new Promise((resolve) => response.once('drain', resolve)), sleep(2_000)])
  response.destroy()
}

const manifestType = 'application/vnd.oci.image.manifest.v1+json'
const json = { 'content-type': manifestType }

const large = Buffer.alloc(3 * 2 ** 20, '{"a":')
const bomb = gzipSync(Buffer.alloc(256 * 2 ** 20))
const layers = (count: number): Buffer =>
  Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: { mediaType: 'a/b', digest: digestOf(''), size: 0 },
      layers: Array.from({ length: count }, (_, index) => ({
        mediaType: 'a/b',
        digest: digestOf(`${index}`),
        size: 2 ** 50,
      })),
    }),
  )

export const hostileAnswers: Readonly<Record<string, HostileAnswer>> = {
  'an endless answer': (response) => {
    response.writeHead(200, json)
    return endless(response, Buffer.alloc(65_536, ' '))
  },
  'an endless list': (response, path) => {
    response.writeHead(200, json)
    response.write(path.includes('tags') ? '{"name":"evil","tags":["a"' : '{"version":1,"items":[{}')
    return endless(response, ',"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"'.repeat(2_000))
  },
  'pages that never end': (response, path) => {
    const link = `</v2/evil/tags/list?last=${Math.random()}&n=1000>; rel="next"`
    const tags = Array.from({ length: 1_000 }, (_, index) => `t${index}-${Math.random()}`)
    reply(
      response,
      200,
      { ...json, link },
      Buffer.from(JSON.stringify({ name: 'evil', tags, version: 1, items: [], path })),
    )
  },
  'redirects in a circle': (response, path, port) =>
    reply(response, 302, { location: `http://127.0.0.1:${port}${path}?again=${Math.random()}` }),
  'a redirect into the service': (response, _path, port) =>
    reply(response, 307, { location: `http://127.0.0.1:${port}/v2/` }),
  'headers without end': (response) => {
    response.socket?.write(`HTTP/1.1 200 OK\r\n${`X-A: ${'b'.repeat(1_000)}\r\n`.repeat(5_000)}`)
  },
  'a challenge of 60 KB': (response) =>
    reply(response, 401, { 'www-authenticate': `Bearer ${'a="b",'.repeat(1_200)}realm="http://127.0.0.1:1/"` }),
  'a compressed bomb': (response) => reply(response, 200, { ...json, 'content-encoding': 'gzip' }, bomb),
  'deeply nested JSON': (response) => reply(response, 200, json, large),
  'a manifest of 20,000 layers': (response) => reply(response, 200, json, layers(20_000)),
  'a size that is not true': (response) => {
    response.writeHead(200, { ...json, 'content-length': 2 ** 40 })
    response.write('{')
  },
  'bytes, one per second': (response) => {
    response.writeHead(200, json)
    const timer = setInterval(() => response.write(' '), 1_000)
    response.once('close', () => clearInterval(timer))
  },
  'nothing at all': () => undefined,
}
