// What a registry can do wrong, one after the other, and what comes of it.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { inspect } from 'node:util'
import { makeSmallImage, type SmallImage } from '../../../test/support/rigs/small-image.ts'
import { type BadRegistry, reply, startBadRegistry, truncate } from '../../../test/support/stand-ins/bad-registry.ts'
import { openContentFolder } from '../../images/content/store.ts'
import type { RegistryFault } from '../artifact/errors.ts'
import { imageDestination, imageSource } from '../artifact/image-target.ts'
import { copy } from '../copy.ts'
import type { RegistryOptions } from './exchange.ts'
import { openRegistry, type Repository, type RepositoryOptions } from './registry.ts'

const credentials = { username: 'ci', password: 'canary-p%ss"word' }
const canaries = [
  /canary/,
  /token-canary/,
  /secret-state/,
  new RegExp(Buffer.from('ci:canary').toString('base64').slice(0, 11)),
]
const retry = { attempts: 4, firstDelayMs: 5, maxDelayMs: 20, maxRetryAfterMs: 2_000 }

let folder: string
let image: SmallImage
let bad: BadRegistry
const opened: { close(): void }[] = []

before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-bad-registry-'))
  image = await makeSmallImage(path.join(folder, 'image'), 3)
})
after(() => fs.rm(folder, { recursive: true, force: true }))
beforeEach(async () => {
  bad = await startBadRegistry()
})
afterEach(async () => {
  for (const each of opened.splice(0)) each.close()
  await bad.close()
})

const repository = (options: Partial<RegistryOptions> = {}, more: RepositoryOptions = {}) => {
  const registry = openRegistry({
    server: bad.server,
    allowInsecure: true,
    credentials,
    policy: { allowLoopback: true, allowPrivate: false },
    retry,
    idleMs: 2_000,
    ...options,
  })
  opened.push(registry)
  return registry.repository('team/image', more)
}
const pushTo = (target: Repository) =>
  copy({ target: imageSource(image.store), reference: image.digest }, { target, reference: 'v1' }, { concurrency: 2 })
const push = (options: Partial<RegistryOptions> = {}, more: RepositoryOptions = {}) => pushTo(repository(options, more))
let pulls = 0
/** Pulls into a new store, and returns its content as well. */
async function pull(options: Partial<RegistryOptions> = {}, reference = 'v1') {
  pulls += 1
  const store = await openContentFolder(path.join(folder, `pulled-${pulls}`))
  const result = await copy({ target: repository(options), reference }, { target: imageDestination(store) }).catch(
    (error: Error) => error,
  )
  const hasManifest = await store.has(image.digest)
  assert.equal(hasManifest, !(result instanceof Error), 'an image is there as a whole or not at all')
  if (result instanceof Error) throw result
  return result
}

async function fails(work: Promise<unknown>, fault: RegistryFault, message: RegExp): Promise<void> {
  const error = await work.then(
    () => assert.fail('it should fail'),
    (problem: Error & { fault?: string }) => problem,
  )
  assert.equal(error.fault, fault, error.stack)
  assert.match(error.message, message)
  const all = inspect(error, { depth: 8 })
  for (const canary of canaries) assert.doesNotMatch(all, canary)
}

const uploadsOf = (method: string) =>
  bad.seen.filter((seen) => seen.method === method && seen.path.includes('/uploads/'))

describe('pushing to a registry that', () => {
  it('pushing to a registry that is good: is done, and the second time nothing is sent', async () => {
    const { digest, progress } = await push()
    assert.ok(bad.manifests.has('v1') && bad.manifests.has(digest))
    assert.deepEqual([progress.bytesDone, progress.bytesSkipped], [progress.bytesTotal, 0])
    assert.equal(bad.blobs.size, progress.blobsTotal)
    bad.seen.length = 0
    const again = await push()
    assert.equal(again.digest, digest)
    assert.equal(again.progress.bytesSkipped, again.progress.bytesTotal)
    assert.equal(uploadsOf('POST').length, 0)
  })

  it('pushing to a registry that ends a token in the middle of an upload: gets a new one', async () => {
    bad.tokens = new Set()
    let puts = 0
    bad.bend = ({ method }) => {
      if (method === 'PUT' && ++puts === 2) bad.tokens?.clear()
      return false
    }
    await push()
    assert.ok(bad.manifests.has('v1'))
    const [asked, ...more] = bad.tokenRequests
    assert.ok(more.length > 0)
    assert.equal(asked?.headers.authorization, `Basic ${Buffer.from('ci:canary-p%ss"word').toString('base64')}`)
    assert.equal(asked?.query.get('service'), 'bad')
    assert.equal(asked?.query.get('scope'), 'repository:team/image:pull,push')
  })

  it('pushing to a registry that takes no token at all: fails, without an endless loop', async () => {
    bad.tokens = new Set()
    bad.bend = () => {
      bad.tokens?.clear()
      return false
    }
    await fails(push(), 'unauthorized', /rejected the credentials \(401\)/)
    assert.ok(bad.seen.length < 20)
  })

  it('pushing to a registry that repeats the credentials in its answer: does not make us repeat them', async () => {
    bad.bend = ({ method, headers }, response, request) => {
      if (method !== 'POST') {
        if (headers.authorization !== undefined) return false
        reply(response, 401, { 'www-authenticate': 'Basic realm="x"' })
        return true
      }
      request.resume()
      const words = `no: ${headers.authorization} is ${Buffer.from((headers.authorization ?? '').slice(6), 'base64')}`
      return reply(response, 403, {}, Buffer.from(JSON.stringify({ errors: [{ code: 'DENIED', message: words }] })))
    }
    await fails(push(), 'forbidden', /denied access \(403: "DENIED: no: Basic \*\*\* is \*\*\*"\)/)
  })

  it('pushing to a registry that asks for patience with Retry-After: gets it', async () => {
    let refused = 0
    let waitedMs = 0
    bad.bend = ({ method }, response, request) => {
      if (method !== 'POST' || refused > 1) return false
      request.resume()
      refused += 1
      if (refused === 1) {
        waitedMs = performance.now()
        reply(response, 429, { 'retry-after': '1' })
        return true
      }
      waitedMs = performance.now() - waitedMs
      return false
    }
    await copy(
      { target: imageSource(image.store), reference: image.digest },
      { target: repository(), reference: 'v1' },
      { concurrency: 1 },
    )
    assert.ok(waitedMs >= 990, `${waitedMs}`)
  })

  it('pushing to a registry that asks for an hour of patience: gets none', async () => {
    bad.bend = ({ method }, response) => method === 'POST' && reply(response, 429, { 'retry-after': '3600' })
    await fails(push(), 'rateLimited', /limits the request rate \(429\)/)
    assert.ok(uploadsOf('POST').length <= 2)
  })

  it('pushing to a registry that is in trouble for a while: gets it all in the end', async () => {
    let troubles = 0
    bad.bend = ({ method, path: at }, response, request) => {
      if (at === '/v2/' || (method === 'HEAD' && troubles > 2) || ++troubles % 3 !== 0) return false
      request.resume()
      return reply(response, [500, 502, 503][troubles % 3] ?? 500)
    }
    await push({ retry: { ...retry, attempts: 8 } })
    assert.ok(troubles > 3 && bad.manifests.has('v1'))
  })

  it('pushing to a registry that is in trouble for ever: fails after so many tries', async () => {
    bad.bend = ({ method }, response, request) => {
      if (method !== 'PUT') return false
      request.resume()
      return reply(response, 503)
    }
    await fails(push(), 'unavailable', /failed \(503\).*Try again when/)
    assert.ok(uploadsOf('PUT').length <= 2 * retry.attempts)
    assert.equal(bad.manifests.size, 0)
  })

  it('pushing to a registry that breaks connections while it takes a piece: gets the rest from where it was', async () => {
    let breaks = 0
    const pieceBytes = 2 ** 20
    const sent: number[] = []
    bad.bend = ({ method, headers }, _response, request) => {
      if (method !== 'PATCH') return false
      sent.push(Number(headers['content-length']))
      if (++breaks !== 2) return false
      request.once('data', () => request.socket.destroy())
      return true
    }
    const { progress } = await push({}, { pieceBytes })
    assert.ok(bad.manifests.has('v1'))
    const whole = sent.reduce((sum, bytes) => sum + bytes, 0)
    assert.ok(breaks > 2 && whole <= progress.bytesTotal + pieceBytes, `${whole} of ${progress.bytesTotal}`)
  })

  it('pushing to a registry that loses the response to the last request: looks the blob up instead of sending it again', async () => {
    let lost = 0
    bad.bend = async ({ method, path: at }, response) => {
      if (method !== 'PUT' || !at.includes('/uploads/') || lost > 0) return false
      lost += 1
      response.end = () => response.socket?.destroy() as never
      return false
    }
    await push()
    assert.equal(lost, 1)
    assert.equal(uploadsOf('PUT').length, bad.blobs.size)
  })

  it('pushing to a registry that accepts only small pieces: sends small ones, also of later blobs', async () => {
    let refusals = 0
    bad.bend = ({ headers }, response, request) => {
      if (Number(headers['content-length'] ?? 0) <= 600_000) return false
      refusals += 1
      request.resume()
      return reply(response, 413)
    }
    const target = repository()
    await pushTo(target)
    assert.ok(bad.manifests.has('v1') && uploadsOf('PATCH').length > 3)
    assert.ok(refusals > 0)
    refusals = 0
    bad.blobs.clear()
    bad.manifests.clear()
    await pushTo(target)
    assert.ok(bad.manifests.has('v1'))
    assert.equal(refusals, 0)
  })

  it('pushing to a registry that takes no large blob, however small its pieces: nothing is learnt of that', async () => {
    bad.bend = ({ method, headers }, response, request) => {
      if (method !== 'PATCH' && Number(headers['content-length'] ?? 0) <= 100_000) return false
      request.resume()
      return reply(response, 413)
    }
    await fails(push(), 'tooLarge', /does not accept uploads of this size/)
    bad.bend = () => false
    bad.seen.length = 0
    await push()
    assert.deepEqual([bad.manifests.has('v1'), uploadsOf('PATCH').length], [true, 0])
  })

  it('pushing to a registry that wants pieces of some size: gets none that is smaller, but the last', async () => {
    const leastBytes = 1_500_000
    bad.bend = ({ method }, response) => {
      if (method === 'POST') response.setHeader('oci-chunk-min-length', leastBytes)
      return false
    }
    await push({}, { pieceBytes: 100_000 })
    const sizes = uploadsOf('PATCH').map(({ body }) => body.length)
    assert.ok(sizes.length > 0 && sizes.every((bytes) => bytes === leastBytes), String(sizes))
  })

  it('pushing to a registry that keeps something else than it was sent: fails', async () => {
    bad.bend = ({ method, path: at }, response, request) => {
      if (method !== 'PUT' || !at.includes('/uploads/')) return false
      request.resume()
      request.on('end', () => reply(response, 201, { 'docker-content-digest': `sha256:${'0'.repeat(64)}` }))
      return true
    }
    await fails(push(), 'invalid', /stored sha256:[0-9a-f]{64} in team\/image with another digest/)
    assert.equal(bad.manifests.size, 0)
  })

  it('pushing to a registry that reads a blob while another push writes it: retries', async () => {
    let refusals = 0
    bad.bend = ({ method, path: at }, response, request) => {
      if (method !== 'PUT' || !at.includes('/manifests/') || ++refusals > 2) return false
      request.resume()
      return reply(response, 400, {}, Buffer.from('{"errors":[{"code":"DIGEST_INVALID","message":"did not match"}]}'))
    }
    await push()
    assert.ok(refusals === 3 && bad.manifests.has('v1'))
  })

  it('pushing to a registry that finds damaged content: reports it after a second attempt', async () => {
    const [chunk] = image.manifest.layers[0]?.chunks ?? []
    assert.ok(chunk)
    const good = imageSource(image.store)
    const from = {
      ...good,
      async *open(blob: Parameters<typeof good.open>[0], options: Parameters<typeof good.open>[1]) {
        for await (const piece of good.open(blob, options))
          yield blob.digest === chunk.digest ? Buffer.alloc(piece.length, 7) : piece
      },
    }
    const pushed = copy({ target: from, reference: image.digest }, { target: repository(), reference: 'v1' })
    await fails(pushed, 'invalid', /arrived twice with another digest. Create the image again/)
    assert.equal(bad.manifests.size, 0)
  })

  it('pushing to a registry that is silent: fails after the idle timeout', async () => {
    bad.bend = ({ method }, _response, request) => method === 'POST' && request.resume() === request
    await fails(push({ idleMs: 100, retry: { ...retry, attempts: 2 } }), 'unavailable', /timed out/)
  })

  it('pushing to a registry that sends uploads to another origin: gets them there, without credentials', async () => {
    const other = await startBadRegistry()
    try {
      bad.tokens = new Set()
      bad.bend = ({ method }, response) => {
        if (method !== 'POST') return false
        return reply(response, 202, { location: `${other.server}/elsewhere?sig=1` })
      }
      other.bend = ({ method, query }, response, request) => {
        if (method !== 'PUT') return false
        request.resume()
        request.on('end', () => reply(response, 201, { 'docker-content-digest': query.get('digest') ?? '' }))
        return true
      }
      await push()
      assert.ok(other.seen.length > 0)
      assert.ok(
        other.seen.every(({ headers, query }) => headers.authorization === undefined && query.get('sig') === '1'),
      )
    } finally {
      await other.close()
    }
  })

  it('pushing to a registry, on abort: ends immediately', async () => {
    const stop = new AbortController()
    bad.bend = ({ method }, _response, request) => {
      if (method !== 'PUT') return false
      request.once('data', () => stop.abort(new Error('enough')))
      return true
    }
    const from = { target: imageSource(image.store), reference: image.digest }
    await assert.rejects(copy(from, { target: repository(), reference: 'v1' }, { signal: stop.signal }), /enough/)
  })
})

describe('pulling from a registry that', () => {
  beforeEach(async () => {
    await push()
    bad.seen.length = 0
  })

  it('pulling from a registry that is good: gives the very same image', async () => {
    const { digest } = await pull()
    assert.equal(digest, image.digest)
  })

  it('pulling from a registry that interrupts a download: requests only the rest', async () => {
    let breaks = 0
    bad.bend = ({ method, path: at, headers }, response) => {
      const blob = bad.blobs.get(at.split('/').at(-1) ?? '')
      if (method !== 'GET' || !blob || blob.length < 100_000 || headers.range !== undefined) return false
      breaks += 1
      truncate(response, blob, 70_000)
      return true
    }
    await pull()
    assert.ok(breaks > 0)
    assert.ok(bad.seen.some(({ headers }) => /^bytes=[1-9]/.test(headers.range ?? '')))
  })

  it('pulling from a registry that does not know ranges: is listened to again from the beginning', async () => {
    let breaks = 0
    bad.bend = (seen, response) => {
      const blob = bad.blobs.get(seen.path.split('/').at(-1) ?? '')
      if (seen.method !== 'GET' || !blob || blob.length < 100_000) return false
      breaks += 1
      if (seen.headers.range === undefined) truncate(response, blob, 70_000)
      else reply(response, 200, {}, blob)
      return true
    }
    await pull()
    assert.ok(breaks > 1)
  })

  it('pulling from a registry that gives something else for a digest: fails', async () => {
    const [digest = ''] = [...bad.blobs].find(([, blob]) => blob.length > 100_000) ?? []
    const good = bad.blobs.get(digest) ?? Buffer.alloc(0)
    const other = Buffer.from(good)
    other[1_000] = (other[1_000] ?? 0) ^ 1
    bad.blobs.set(digest, other)
    await assert.rejects(pull(), new RegExp(`Content ${digest} is sha256:`))
    bad.blobs.set(digest, good.subarray(1))
    await fails(pull(), 'invalid', /has \d+ bytes, not/)
    bad.blobs.set(digest, Buffer.concat([good, good]))
    await fails(pull(), 'invalid', /has \d+ bytes, not/)
  })

  it('pulling from a registry that moves the tag between two requests: uses the first manifest', async () => {
    const before = bad.manifests.get('v1')
    bad.bend = ({ path: at }) => {
      if (at.endsWith('/manifests/v1'))
        setImmediate(() => bad.manifests.set('v1', { type: 'x/y', bytes: Buffer.from('{}') }))
      return false
    }
    const { digest } = await pull()
    assert.equal(digest, image.digest)
    assert.notEqual(bad.manifests.get('v1'), before)
    assert.equal(bad.seen.filter(({ path: at }) => at.includes('/manifests/')).length, 1)
  })

  it('pulling from a registry that reports another digest than that of the manifest: fails', async () => {
    bad.bend = ({ path: at }, response) => {
      if (at.includes('/manifests/')) response.setHeader('docker-content-digest', `sha256:${'1'.repeat(64)}`)
      return false
    }
    await fails(pull(), 'invalid', /does not match its digest/)
    const wanted = `sha256:${'2'.repeat(64)}`
    const v1 = bad.manifests.get('v1')
    assert.ok(v1)
    bad.manifests.set(wanted, v1)
    bad.bend = () => false
    await fails(pull({}, wanted), 'invalid', /does not match its digest/)
  })

  it('pulling from a registry without such a tag: reports it', async () => {
    await fails(pull({}, 'none'), 'notFound', /does not have it \(404: "MANIFEST_UNKNOWN"\). Check the name/)
  })

  it('pulling from a registry that redirects to another origin: is followed without credentials', async () => {
    const other = await startBadRegistry()
    try {
      bad.tokens = new Set()
      for (const [digest, blob] of bad.blobs) other.blobs.set(digest, blob)
      bad.bend = ({ path: at }, response) => {
        if (!at.includes('/blobs/')) return false
        return reply(response, 307, { location: `http://user:canary@127.0.0.1:${other.port}${at}?sig=secret-state` })
      }
      await pull()
      assert.ok(other.seen.length > 0)
      assert.ok(other.seen.every(({ headers }) => headers.authorization === undefined))
      assert.ok(bad.seen.some(({ headers }) => headers.authorization?.startsWith('Bearer ')))
    } finally {
      await other.close()
    }
  })

  const places: readonly (readonly [string, RegistryFault, RegExp])[] = [
    ['http://169.254.169.254/latest', 'address', /"169\.254\.169\.254" has no allowed address/],
    ['http://2852039166/latest', 'address', /"169\.254\.169\.254" has no allowed address/],
    ['http://0xa9fea9fe/', 'address', /"169\.254\.169\.254" has no allowed address/],
    ['http://[::ffff:169.254.169.254]/', 'address', /has no allowed address/],
    ['http://[fe80::1]/', 'address', /has no allowed address/],
    ['http://10.0.0.1/', 'address', /"10\.0\.0\.1" has no allowed address/],
    ['http://0.0.0.0:1/', 'address', /has no allowed address/],
    ['file:///etc/passwd', 'insecure', /is not https/],
  ]
  for (const [location, fault, message] of places)
    it(`pulling from a registry that redirects to ${location}: is not followed`, async () => {
      bad.bend = ({ path: at }, response) => at.includes('/blobs/') && reply(response, 307, { location })
      await fails(pull(), fault, message)
    })

  it('pulling from a registry that redirects in a circle: is left', async () => {
    bad.bend = ({ path: at }, response) => at.includes('/blobs/') && reply(response, 302, { location: at })
    await fails(pull(), 'invalid', /redirects more than 5 times/)
  })

  it('pulling from a registry that names a token service at a place where none may be: gets no password', async () => {
    for (const [realm, fault] of [
      ['https://169.254.169.254/token', 'address'],
      ['http://169.254.169.254/token', 'insecure'],
      ['ftp://x/', 'insecure'],
      ['nothing', 'invalid'],
    ] as const) {
      bad.bend = (_seen, response) => reply(response, 401, { 'www-authenticate': `Bearer realm="${realm}"` })
      await fails(pull(), fault, /has no allowed address|not https|has no valid token service/)
    }
  })
})

describe('the address of a registry', () => {
  it('the address of a registry is refused if the policy forbids it, in any spelling', async () => {
    const policy = { allowLoopback: false, allowPrivate: false }
    for (const host of [
      '127.0.0.1',
      'localhost',
      '2130706433',
      '0x7f000001',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '10.1.2.3',
    ])
      await fails(pull({ server: `http://${host}:${bad.port}`, policy }), 'address', /has no allowed address/)
    assert.equal(bad.seen.length, 0)
  })

  it('the address of a registry is judged at every connection, whatever the name meant before', async () => {
    await push()
    const addresses = ['127.0.0.1', '169.254.169.254']
    const asked: string[] = []
    const lookup: RegistryOptions['lookup'] = (name, _options, callback) => {
      asked.push(name)
      callback(null, [{ address: addresses[Math.min(asked.length, 2) - 1] ?? '', family: 4 }])
    }
    // Every answer ends its connection, so that each request asks for the address again.
    bad.bend = (_seen, response) => response.setHeader('connection', 'close') === undefined
    await fails(
      pull({ server: `http://registry.test:${bad.port}`, lookup }),
      'address',
      /"registry.test" has no allowed address/,
    )
    assert.ok(asked.length >= 2)
  })

  it('the address of a registry is that one of several that is allowed', async () => {
    await push()
    const lookup: RegistryOptions['lookup'] = (_name, _options, callback) =>
      callback(null, [
        { address: '10.255.255.1', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ])
    await pull({ server: `http://registry.test:${bad.port}`, lookup })
  })

  it('the address of a registry is not http unless that is allowed', async () => {
    await fails(pull({ allowInsecure: false }), 'insecure', /is not https/)
    assert.equal(bad.seen.length, 0)
  })
})
