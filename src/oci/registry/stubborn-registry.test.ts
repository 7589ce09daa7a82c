// Registries, and ways to them, that make no mistake one could name, and are hard to deal with all the same.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import type http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { makeSmallImage, type SmallImage } from '../../../test/support/rigs/small-image.ts'
import { type BadRegistry, reply, startBadRegistry } from '../../../test/support/stand-ins/bad-registry.ts'
import { makePair } from '../../../test/support/tools/certificates.ts'
import type { RegistryError } from '../artifact/errors.ts'
import { imageSource } from '../artifact/image-target.ts'
import { copy } from '../copy.ts'
import type { RegistryOptions } from './exchange.ts'
import { networkError } from './network-error.ts'
import { openRegistry, type RepositoryOptions } from './registry.ts'

const credentials = { username: 'ci', password: 'secret' }
const retry = { attempts: 4, firstDelayMs: 1, maxDelayMs: 5, maxRetryAfterMs: 100 }
let folder: string
let image: SmallImage
let bad: BadRegistry
const opened: { close(): unknown }[] = []

before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-stubborn-'))
  image = await makeSmallImage(folder, 3)
})
after(() => fs.rm(folder, { recursive: true }))
beforeEach(async () => {
  bad = await startBadRegistry()
})
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
  await bad.close()
})

const lookup: net.LookupFunction = (_name, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }])

const repository = (options: Partial<RegistryOptions> = {}, more: RepositoryOptions = {}) => {
  const policy = { allowLoopback: true, allowPrivate: false }
  const registry = openRegistry({ server: bad.server, allowInsecure: true, credentials, policy, retry, ...options })
  opened.push(registry)
  return registry.repository('team/image', more)
}
const push = (target = repository()) =>
  copy({ target: imageSource(image.store), reference: image.digest }, { target, reference: 'v1' })

describe('a registry', () => {
  it('a registry that forgets every upload after its first piece is given up', async () => {
    let pieces = 0
    bad.bend = ({ method, path: place, headers }, response) => {
      if (method === 'PATCH' && headers['content-range']?.startsWith('0-')) pieces += 1
      else if (method === 'PATCH' || (method === 'GET' && place.includes('/uploads/'))) return reply(response, 404)
      return false
    }
    await assert.rejects(push(repository({}, { pieceBytes: 1_000 })), { fault: 'session' })
    assert.ok(pieces > 1 && pieces < 50, `${pieces} first pieces`)
  })

  it('a registry that cannot mount blobs gets all of them, and no further requests to mount', async () => {
    let mounts = 0
    bad.bend = ({ method, query }, response) =>
      method === 'POST' && query.has('mount') && ++mounts > 0 && reply(response, 403)
    const { progress } = await push(repository({}, { mountFrom: 'team/base' }))
    assert.equal(bad.blobs.size, progress.blobsTotal)
    assert.ok(bad.manifests.has('v1'))
    assert.ok(mounts > 0 && mounts <= 4, `${mounts} at once at most`)
  })

  it('a registry whose lookups are retried gets a bounded number of them', async () => {
    let looks = 0
    bad.bend = ({ method, path: place }, response) => {
      if (method === 'HEAD' && bad.seen.some((seen) => seen.method === 'POST'))
        return ++looks > 0 && reply(response, 503)
      return (method === 'POST' && place.includes('/uploads/') && reply(response, 503)) || false
    }
    await assert.rejects(push(), { fault: 'unavailable' })
    assert.ok(looks <= 4 * 2 * retry.attempts, `${looks} looks`)
  })

  it('a registry that answers before it was sent all, and then neither reads nor ends, keeps no connection', async () => {
    let refusals = 0
    const server = net.createServer((socket) => {
      socket.on('error', () => undefined).once('data', (head) => {
        const isUpload = head.toString('latin1').startsWith('PUT')
        if (isUpload) socket.pause()
        refusals += isUpload ? 1 : 0
        const location = head.toString('latin1').startsWith('POST') ? 'Location: /v2/team/image/blobs/uploads/1\r\n' : ''
        const status = isUpload ? '403 No' : location === '' ? '200 OK' : '202 Accepted'
        socket.write(`HTTP/1.1 ${status}\r\n${location}${isUpload ? '' : 'Connection: close\r\n'}Content-Length: 0\r\n\r\n`)
        if (!isUpload) socket.end()
      })
    }) // biome-ignore format: a small server
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    opened.push({ close: () => server.close() })
    const { port } = server.address() as net.AddressInfo
    const target = repository({ server: `http://127.0.0.1:${port}`, maxSockets: 1 })
    const blob = { mediaType: 'a/b', digest: `sha256:${'a'.repeat(64)}`, size: 32 * 2 ** 20 }
    const content = { open: async function* () { for (let at = 0; at < 32; at++) yield Buffer.alloc(2 ** 20) } } // biome-ignore format: short
    for (let tries = 1; tries <= 3; tries++) {
      await assert.rejects(target.put(blob, content), { fault: 'forbidden' })
      assert.equal(refusals, tries)
    }
  })

  it('a registry that redirects immediately: a server that asks for a password there does not get it', async () => {
    const elsewhere = await startBadRegistry()
    opened.push(elsewhere)
    elsewhere.tokens = new Set()
    bad.bend = ({ path: place }, response) =>
      place === '/v2/' && reply(response, 302, { location: `${elsewhere.server}/v2/` })
    await push()
    assert.ok(elsewhere.seen.length > 0)
    assert.equal(elsewhere.tokenRequests.length, 0)
  })

  it('a registry gets several blobs in parallel', async () => {
    const both = Promise.withResolvers<void>()
    let now = 0
    bad.bend = async ({ method, path: place }) => {
      if (method !== 'PUT' || !place.includes('/uploads/')) return false
      now += 1
      if (now > 1) both.resolve()
      await both.promise
      return false
    }
    await push()
    assert.ok(now > 1)
  })

  it('a registry is shown a new token before the old one ends', async () => {
    bad.tokens = new Set()
    bad.tokenSeconds = 1
    const target = repository()
    const blob = { mediaType: 'a/b', digest: `sha256:${'a'.repeat(64)}`, size: 1 }
    await target.has(blob)
    assert.equal(bad.tokenRequests.length, 1)
    // Half of its second is enough.
    await new Promise((resolve) => setTimeout(resolve, 600))
    await target.has(blob)
    assert.deepEqual([bad.tokenRequests.length, bad.refused], [2, 1])
  })

  it('a registry that names an upload address on this host is not followed', async () => {
    bad.bend = ({ method }, response) =>
      method === 'POST' && reply(response, 202, { location: 'http://169.254.169.254/v2/x' })
    await assert.rejects(push(), { fault: 'address' })
  })

  it('a registry at https is not left for plain http: neither for a blob nor for a token', async () => {
    const { cert, key } = await makePair({ name: 'registry.test' })
    const answers: Readonly<Record<string, http.OutgoingHttpHeaders & { readonly status: number }>> = {
      '/v2/': { status: 200 },
      '/v2/team/image/manifests/away': { status: 307, location: `http://127.0.0.1:${bad.port}/v2/` },
      '/v2/team/image/manifests/token': {
        status: 401,
        'www-authenticate': `Bearer realm="http://127.0.0.1:${bad.port}/token",service="x"`,
      },
    }
    const secure = https.createServer({ cert, key }, (request, response) => {
      const { status, ...headers } = answers[request.url ?? ''] ?? { status: 404 }
      response.writeHead(status, headers).end()
    })
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
    opened.push({ close: () => secure.close() })
    const { port } = secure.address() as net.AddressInfo
    const target = repository({ server: `https://registry.test:${port}`, ca: cert, lookup })
    for (const reference of ['away', 'token']) await assert.rejects(target.resolve(reference), { fault: 'insecure' })
    assert.deepEqual([bad.seen, bad.tokenRequests], [[], []])
  })

  it('a registry at plain http: its password goes to a token service at the same host, to no other one', async () => {
    const service = await startBadRegistry()
    opened.push(service)
    const asked = async (host: string, options: Partial<RegistryOptions> = {}) => {
      const token = service.tokenRequests.length
      bad.tokens = new Set()
      service.tokens = bad.tokens
      const challenge = { 'www-authenticate': `Bearer realm="http://${host}:${service.port}/token",service="x"` }
      bad.bend = ({ headers }, response) =>
        headers.authorization?.startsWith('Bearer') !== true && reply(response, 401, challenge)
      await assert.rejects(repository({ lookup, ...options }).resolve('v1'), ({ fault, message }: RegistryError) => {
        if (fault === 'insecure')
          assert.match(
            message,
            /^the token service http:\/\/\S+:\d+\/token of \S+ is at another host and not https\. Serve/,
          )
        else assert.equal(fault, 'notFound')
        return true
      })
      return service.tokenRequests.slice(token).map(({ headers }) => headers.authorization)
    }
    assert.deepEqual(await asked('127.0.0.1'), [`Basic ${Buffer.from('ci:secret').toString('base64')}`])
    assert.deepEqual(await asked('elsewhere.test'), [])
    assert.deepEqual(await asked('localhost'), [])
    assert.deepEqual(await asked('elsewhere.test', { credentials: undefined }), [undefined])
  })

  it('a registry at https: its password goes to a token service of another name at https, as that of Docker', async () => {
    const { cert, key } = await makePair({ name: 'registry.test' })
    const given: (string | undefined)[] = []
    const secure = https.createServer({ cert, key }, ({ url = '', headers }, response) => {
      if (url.startsWith('/token')) given.push(headers.authorization)
      const realm = `Bearer realm="https://localhost:${port}/token",service="x"`
      if (url.startsWith('/token')) response.end('{"token":"t"}')
      else if (headers.authorization === 'Bearer t') response.writeHead(404).end()
      else response.writeHead(401, { 'www-authenticate': realm }).end()
    })
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
    opened.push({ close: () => secure.close() })
    const { port } = secure.address() as net.AddressInfo
    const target = repository({ server: `https://registry.test:${port}`, ca: cert, lookup })
    await assert.rejects(target.resolve('v1'), { fault: 'notFound' })
    assert.deepEqual(given, [`Basic ${Buffer.from('ci:secret').toString('base64')}`])
  })

  it('a registry of Docker is where its API is', async () => {
    const asked: string[] = []
    const lookup: net.LookupFunction = (name, _options, callback) => {
      asked.push(name)
      callback(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
    }
    for (const host of ['docker.io', 'index.docker.io', 'registry-1.docker.io'])
      await assert.rejects(repository({ server: `https://${host}`, lookup }).resolve('v1'), { fault: 'unknownHost' })
    assert.deepEqual(asked, Array(3).fill('registry-1.docker.io'))
  })

  it('a registry that serves manifests as plain JSON is understood by their media type', async () => {
    const target = repository()
    const { digest } = await push(target)
    for (const type of ['application/json', '', 'Application/VND.oci.image.manifest.v1+json']) {
      const { bytes } = bad.manifests.get('v1') ?? assert.fail()
      bad.manifests.set('v1', { type, bytes })
      const found = await target.resolve('v1')
      assert.deepEqual([found.digest, found.mediaType], [digest, 'application/vnd.oci.image.manifest.v1+json'])
    }
  })
})

describe('the way to a registry', () => {
  it('the way to a registry is found again when its name is unknown for a moment', async () => {
    let lookups = 0
    const lookup: net.LookupFunction = (_name, _options, callback) => {
      lookups += 1
      if (lookups === 2) callback(Object.assign(new Error('not now'), { code: 'ENOTFOUND' }), [])
      else callback(null, [{ address: '127.0.0.1', family: 4 }])
    }
    bad.bend = ({ method }, response) => {
      // So that the next request needs a new connection.
      if (method === 'GET') response.setHeader('connection', 'close')
      return false
    }
    await push(repository({ server: `http://registry.test:${bad.port}`, lookup }))
    assert.ok(lookups > 2 && bad.manifests.has('v1'))
    const never: net.LookupFunction = (_name, _options, callback) =>
      callback(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
    await assert.rejects(push(repository({ server: `http://never.test:${bad.port}`, lookup: never })), {
      fault: 'unknownHost',
    })
  })

  it('the way to a registry that may be mistyped is tried once, and again if the registry has answered before', async () => {
    const waits: (string | undefined)[] = []
    const onWaiting: RegistryOptions['onWaiting'] = (waiting) => waits.push(waiting?.problem)
    const blob = { mediaType: 'a/b', digest: `sha256:${'a'.repeat(64)}`, size: 1 }
    const ask = (options: Partial<RegistryOptions>) => repository({ onWaiting, ...options }).has(blob)
    const unresolved: net.LookupFunction = (_name, _options, callback) =>
      callback(Object.assign(new Error('no'), { code: 'EAI_AGAIN' }), [])
    const { server } = bad
    await bad.close()
    const refused = `${server}/v2/: connection refused (ECONNREFUSED)`
    await assert.rejects(ask({ mayBeMistyped: true }), { fault: 'unreachable', problem: refused })
    assert.deepEqual(waits, [])
    // A name server may be away for a moment.
    await assert.rejects(ask({ server: 'https://never.test', mayBeMistyped: true, lookup: unresolved }), {
      fault: 'unavailable',
    })
    assert.equal(waits.splice(0).length, 3)
    await assert.rejects(ask({}), { fault: 'unavailable', problem: refused })
    assert.deepEqual(waits.splice(0), Array(3).fill(refused))
    bad = await startBadRegistry({ port: bad.port })
    await ask({ mayBeMistyped: true })
    await bad.close()
    await assert.rejects(ask({ mayBeMistyped: true }), { fault: 'unavailable', problem: refused })
    assert.deepEqual(waits, Array(3).fill(refused))
    bad = await startBadRegistry()
  })

  it('the connection to a registry is still made for others after one caller aborts', async () => {
    const asked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    bad.bend = async ({ path: place }) => {
      if (place !== '/v2/') return false
      asked.resolve()
      await goOn.promise
      return false
    }
    const target = repository()
    const blob = { mediaType: 'a/b', digest: `sha256:${'a'.repeat(64)}`, size: 1 }
    const gone = new AbortController()
    const first = target.has(blob, gone.signal)
    const second = target.has(blob)
    await asked.promise
    gone.abort(new Error('went away'))
    await assert.rejects(first, /went away/)
    goOn.resolve()
    assert.equal(await second, false)
  })

  it('the connection to an absent registry fails without effect after the last caller aborts', async () => {
    const failed = Promise.withResolvers<void>()
    const lookup: net.LookupFunction = (_name, _options, callback) => {
      callback(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
      // An unhandled rejection is reported after this.
      setTimeout(failed.resolve, 10)
    }
    const target = repository({ server: `http://registry.test:${bad.port}`, lookup })
    const blob = { mediaType: 'a/b', digest: `sha256:${'a'.repeat(64)}`, size: 1 }
    const unhandled: unknown[] = []
    const note = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', note)
    try {
      await assert.rejects(target.has(blob, AbortSignal.abort(new Error('went away'))), /went away/)
      await failed.promise
    } finally {
      process.off('unhandledRejection', note)
    }
    assert.deepEqual(unhandled, [])
  })

  const https = new URL('https://registry.example.com')
  for (const [code, message, fault] of [
    ['EPROTO', 'write EPROTO 80:error:0A00010B:SSL routines:ssl3_get_record:wrong version number', 'plain'],
    ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'packet length too long', 'plain'],
    ['EPROTO', 'write EPROTO 80:error:0A00042E:SSL routines:ssl3_read_bytes:tlsv1 alert protocol version', 'refused'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tlsv13 alert certificate required', 'refused'],
    ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'unsupported protocol', 'refused'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate', 'untrusted'],
    ['ECONNRESET', 'socket hang up', 'unavailable'],
  ] as const)
    it(`the way to a registry that fails with ${code} (${message.slice(-24)}) is ${fault}`, () =>
      assert.equal(networkError(https, Object.assign(new Error(message), { code })).fault, fault))
})
