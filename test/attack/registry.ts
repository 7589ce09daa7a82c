// Doors of a registry, or of a folder of a web server, that the operator has named and that became hostile.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type BadRegistry, reply, startBadRegistry } from '../support/stand-ins/bad-registry.ts'
import type { Attacker } from './attacker.ts'
import type { Doors } from './suite.ts'
import { startTarget, type Target, team } from './target.ts'

interface RegistryTarget extends Target {
  readonly registry: BadRegistry
}

async function startWithRegistry(): Promise<RegistryTarget> {
  const registry = await startBadRegistry()
  const target = await startTarget({
    settings: {
      registries: { allowPrivate: true, allowLoopback: true },
      remotes: [
        { name: 'folder', url: `${registry.server}/folder/`, allowInsecure: true },
        { name: 'oci', url: `oci://127.0.0.1:${registry.port}/evil`, allowInsecure: true },
      ],
    },
  })
  const login = { server: registry.server, username: 'a', password: 'b', allowInsecure: true }
  await target.admin('POST', `/namespaces/${team}/secrets/registrycredentials/add`, login)
  const end = target[Symbol.asyncDispose]
  return {
    ...target,
    registry,
    [Symbol.asyncDispose]: async () => {
      await registry.close()
      await end()
    },
  }
}

type Misbehave = (response: http.ServerResponse, path: string, port: number) => unknown

/** Writes for as long as the other side reads, 64 MB at most. */
async function endless(response: http.ServerResponse, piece: Buffer | string): Promise<void> {
  response.on('error', () => undefined)
  for (let bytes = 0; bytes < 64 * 2 ** 20 && !response.destroyed; bytes += piece.length)
    if (!response.write(piece))
      await Promise.race([new Promise((resolve) => response.once('drain', resolve)), sleep(2_000)])
  response.destroy()
}

const digest = (text: string | Buffer): string => `sha256:${hash('sha256', text)}`
const manifestType = 'application/vnd.oci.image.manifest.v1+json'
const json = { 'content-type': manifestType }

const large = Buffer.alloc(3 * 2 ** 20, '{"a":')
const bomb = gzipSync(Buffer.alloc(256 * 2 ** 20))
const layers = (count: number): Buffer =>
  Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: { mediaType: 'a/b', digest: digest(''), size: 0 },
      layers: Array.from({ length: count }, (_, index) => ({
        mediaType: 'a/b',
        digest: digest(`${index}`),
        size: 2 ** 50,
      })),
    }),
  )

const manners: Readonly<Record<string, Misbehave>> = {
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

/** Every request that makes the server talk to the registry. It is not waited for longer than a person would. */
async function provoke(attacker: Attacker, { apiUrl, tokens, registry: { port } }: RegistryTarget): Promise<void> {
  const namespace = `${apiUrl}/api/v1/namespaces/${team}`
  const token = tokens.developer
  const reference = `127.0.0.1:${port}/evil/image:latest`
  const pull = (kind: string, item: string, index: number): Promise<unknown> =>
    attacker.call('POST', `${namespace}/${kind}/${encodeURIComponent(item)}/pull`, { token, body: { name: `p${index}-${Math.random().toString(36).slice(2)}` } }) // biome-ignore format: one call
  const uses = [
    () => attacker.call('GET', `${namespace}/remoteimages`, { token }),
    () => attacker.call('GET', `${namespace}/remoteisos`, { token }),
    ...Array.from(
      { length: 6 },
      (_, index) => () => pull('remoteimages', index % 2 === 0 ? reference : 'folder/a', index),
    ),
    () => pull('remoteisos', 'folder/a', 9),
  ]
  await Promise.race([Promise.all(uses.map((use) => use())), sleep(2_500)])
}

export const registry: Doors<RegistryTarget> = {
  start: startWithRegistry,
  doors: Object.entries(manners).map(([what, misbehave]) => ({
    name: `registry: ${what}`,
    attack: async (attacker: Attacker, target: RegistryTarget) => {
      const hostile = target.registry
      const answers = new Set<http.ServerResponse>()
      hostile.bend = (seen, response, request) => {
        answers.add(response)
        request.resume()
        misbehave(response, seen.path, hostile.port)
        return true
      }
      for (let round = 0; round < (attacker.effort.isLong ? 20 : 1); round++) await provoke(attacker, target)
      assert.ok(answers.size > 0, 'the server has asked the registry')
      // The connections of this door end with it.
      hostile.bend = (_seen, response) => reply(response, 404)
      for (const answer of answers) answer.destroy()
    },
  })),
}
