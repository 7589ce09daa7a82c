// Remotes over real connections: their lists, and pulls that are interrupted, redirected, invalid or no longer wanted.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type Answer, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { type RemoteFolder, startRemote } from '../../../../test/support/stand-ins/remote-folder.ts'
import { makePair } from '../../../../test/support/tools/certificates.ts'
import { randomDisc } from '../../../../test/support/tools/disc.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import { collectOnce } from '../../../controllers/collect-images.ts'
import { pullImages } from '../../../controllers/pull-images.ts'
import { collect } from '../../../images/collect.ts'
import type { Loop } from '../../../platform/loop.ts'
import { parseSettings } from '../../config/settings.ts'
import { parseFolderIndex } from '../../remotes/folder.ts'
import { getFrom } from '../../remotes/http.ts'
import { createPulls } from '../../remotes/image-pulls.ts'
import { Remotes } from '../../remotes/remotes.ts'

const base = '/api/v1/namespaces/svc-default'
let near: RemoteFolder
let far: RemoteFolder
let service: TestService
let pulls: Loop
before(async () => {
  near = await startRemote()
  far = await startRemote()
  const remotes = [
    { name: 'near', url: near.url, allowInsecure: true },
    { name: 'far', url: far.url.slice(0, -1), allowInsecure: true },
  ]
  service = await startService({ settings: { remotes } })
  pulls = pullImages(service.services, createPulls(service.services))
})
after(async () => {
  await pulls.stop()
  await service[Symbol.asyncDispose]()
  await near[Symbol.asyncDispose]()
  await far[Symbol.asyncDispose]()
})

const pull = (wanted: string, name: string, kind = 'image'): Promise<Answer> =>
  service.call('POST', `${base}/remote${kind}s/${encodeURIComponent(wanted)}/pull`, { body: { name } })
const shown = async (name: string, kind = 'image') => (await service.call('GET', `${base}/${kind}s/${name}`)).body
async function ended(name: string, kind = 'image') {
  await eventually(async () => assert.notEqual((await shown(name, kind)).state, 'Updating'))
  return shown(name, kind)
}
const bytesOf = async (url: string): Promise<Buffer> =>
  (await service.app.inject({ url: `${base}${url}`, headers: { authorization: `Bearer ${service.adminToken}` } }))
    .rawPayload
const leftovers = async (): Promise<string[]> => [
  ...(await fs.readdir(service.services.partialFolder)),
  ...(await fs.readdir(service.services.uploads.folder)),
]
/** Updates the index with the files that are served. */
function serve(name: string, bytes = randomBytes(2 ** 20), more: object = {}): Buffer {
  near.trick = () => false
  near.ranges.length = 0
  near.items.set(name, { bytes, ...more })
  return bytes
}

describe('the list', () => {
  it('the list has the items of all remotes, each under a name by which it can be pulled', async () => {
    serve('both', randomBytes(1024), { type: 'arm64' })
    serve('disc.iso', randomBytes(2048), { kind: 'iso' })
    far.items.set('both', { bytes: randomBytes(3 * 2 ** 20) })
    const { body } = await service.call('GET', `${base}/remoteimages`)
    assert.deepEqual(body, {
      items: [
        { name: 'both', size: '1.0K', type: 'arm64' },
        { name: 'far/both', size: '3M', type: 'amd64' },
      ],
    })
    assert.deepEqual((await service.call('GET', `${base}/remoteisos`)).body.items, [
      { name: 'disc.iso', size: '2.0K', type: 'amd64' },
    ])
  })

  it('the list names a remote that does not respond, and fails if none responds', async () => {
    far.index = '{'
    const some = await service.call('GET', `${base}/remoteimages`)
    assert.deepEqual(some.body.unavailable, [{ remote: 'far', message: 'index.json of remote far is not JSON' }])
    assert.deepEqual(some.body.items.map(({ name }: { name: string }) => name), ['both']) // biome-ignore format: one look
    near.index = '[]'
    const none = await service.call('GET', `${base}/remoteimages`)
    assert.deepEqual([none.status, none.body.reason], [503, 'ServiceUnavailable'], none.text)
    near.index = far.index = undefined
  })

  it('the list refuses an index with a file outside of its folder', () => {
    const place = { name: 'x', url: new URL('https://host.example/a/') }
    const item = { kind: 'image', name: 'ok', type: 'amd64', size: 1, sha256: 'a'.repeat(64), file: 'ok' }
    const parse = (...items: object[]) => parseFolderIndex(JSON.stringify({ version: 1, items }), place)
    assert.equal(parse(item, { ...item, name: 'two', file: 'sub/two.img?x=1' }).length, 2)
    const wrong: readonly object[] = [
      ...['../ok', '..%2fok/../../ok', '%2e%2e/ok', '/b/ok', '//other.example/a/ok', 'https://other.example/a/ok',
        'http://host.example/a/ok', 'file:///etc/passwd', 'https://u:p@host.example/a/ok', '\\..\\ok'].map((file) => ({ ...item, file })),
      ...['../x', '..', 'A', 'a/b', '', 'a\u0000'].map((name) => ({ ...item, name })),
      { ...item, size: 2 ** 50 }, { ...item, size: 0 }, { ...item, sha256: 'x' }, { ...item, type: 'riscv' }, { ...item, kind: 'x' },
    ] // biome-ignore format: rows
    for (const each of wrong) assert.throws(() => parse(each), /index\.json of remote x/, JSON.stringify(each))
    assert.throws(() => parse(item, item), /twice/)
  })
})

describe('a pull', () => {
  it('a pull is Updating at first, then Ready with every byte, and leaves no files behind', async () => {
    const disk = serve('sonoma', undefined, { type: 'arm64', index: { description: 'Theirs', firmware: 'uefi' } })
    const answer = await pull('sonoma', 'mine')
    assert.deepEqual(
      [answer.status, answer.body.state, answer.body.sourceType],
      [202, 'Updating', 'remote'],
      answer.text,
    )
    const image = await ended('mine')
    assert.deepEqual(
      [image.state, image.type, image.description, image.source, image.size],
      ['Ready', 'arm64', 'Theirs', 'near/sonoma', '1M'],
      image.errorMessage,
    )
    assert.ok((await bytesOf('/images/mine/download')).equals(disk))
    const manifest = await service.services.content.read(image.checksum, 2 ** 20)
    assert.deepEqual(JSON.parse(manifest.toString()).boot, { kind: 'firmware', firmware: 'uefi' })
    assert.deepEqual(await leftovers(), [])
  })

  it('a pull decompresses an image, but not an ISO', async () => {
    const disk = randomBytes(2 ** 19)
    serve('packed', gzipSync(disk))
    await pull('packed', 'packed')
    const packed = await ended('packed')
    assert.equal(packed.state, 'Ready', packed.errorMessage)
    assert.ok((await bytesOf('/images/packed/download')).equals(disk))
    const disc = serve('odd.iso', randomDisc(40_001), { kind: 'iso' })
    await pull('near/odd.iso', 'odd.iso', 'iso')
    assert.equal((await ended('odd.iso', 'iso')).state, 'Ready')
    assert.ok((await bytesOf('/isos/odd.iso/download')).equals(disc))
  })

  it('a pull refuses invalid and taken names, and unknown items', async () => {
    for (const [
      wanted,
      name,
      status,
    ] of [['sonoma', '../x', 422], ['sonoma', 'mine', 409], ['none', 'x', 404], ['../../x', 'x', 404]] as const) // biome-ignore format: rows
      assert.equal((await pull(wanted, name)).status, status, `${wanted} ${name}`)
  })

  it('a pull continues by ranges after every interruption', async () => {
    const disk = serve('cut', randomBytes(4 * 2 ** 20))
    near.trick = (request, response, bytes) => {
      const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
      if (start > 3 * 2 ** 20) return false
      const status = start > 0 ? 206 : 200
      response.writeHead(status, {
        'content-length': bytes.length - start,
        'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}`,
      })
      response.write(bytes.subarray(start, start + 2 ** 20), () => response.destroy())
      return true
    }
    await pull('cut', 'cut')
    const image = await ended('cut')
    assert.equal(image.state, 'Ready', image.errorMessage)
    assert.ok((await bytesOf('/images/cut/download')).equals(disk))
    const starts = near.ranges.map((range) => Number(/\d+/.exec(range)?.[0] ?? 0))
    assert.ok(starts.length > 3 && starts.every((start, at) => at === 0 || start >= (starts[at - 1] ?? 0)), `${starts}`)
  })

  it('a pull resumes after a restart', async () => {
    const disk = serve('slow', randomBytes(4 * 2 ** 20))
    near.trick = (_request, response, bytes) => {
      response.writeHead(200, { 'content-length': bytes.length }).write(bytes.subarray(0, 3 * 2 ** 20))
      return true
    }
    await pull('slow', 'slow')
    const { partialFolder } = service.services
    await eventually(async () => {
      const [file = ''] = await fs.readdir(partialFolder)
      assert.equal((await fs.stat(path.join(partialFolder, file))).size, 3 * 2 ** 20)
    })
    await pulls.stop()
    assert.equal((await shown('slow')).state, 'Updating')
    near.trick = () => false
    pulls = pullImages(service.services, createPulls(service.services))
    assert.equal((await ended('slow')).state, 'Ready')
    assert.deepEqual(near.ranges, ['', `bytes=${3 * 2 ** 20}-`])
    assert.ok((await bytesOf('/images/slow/download')).equals(disk))
  })

  it('a pull ends when its record is deleted, and its content is freed within ten minutes', async () => {
    serve('unwanted', randomBytes(4 * 2 ** 20))
    let isClosed: boolean | undefined
    near.trick = (_request, response, bytes) => {
      isClosed = false
      response.writeHead(200, { 'content-length': bytes.length }).write(bytes.subarray(0, 2 ** 20))
      response.on('close', () => {
        isClosed = true
      })
      return true
    }
    await pull('unwanted', 'unwanted')
    await eventually(async () => assert.deepEqual([isClosed, (await leftovers()).length], [false, 1]))
    assert.equal((await service.call('DELETE', `${base}/images/unwanted`)).status, 200)
    await eventually(async () => assert.deepEqual([isClosed, await leftovers()], [true, []]))
    assert.equal((await pull('unwanted', 'unwanted')).status, 202)
    await service.call('DELETE', `${base}/images/unwanted`)

    // Only the content that was stored before the record was deleted is freed.
    const { content } = service.services
    const count = async () => (await content.list({ limit: 1_000 })).items.length
    const before = await count()
    const kept = serve('goes', randomBytes(2 ** 20))
    await pull('goes', 'goes')
    await ended('goes')
    await service.call('DELETE', `${base}/images/goes`)
    const collected = (nowMs: number) =>
      collectOnce(
        service.services,
        {
          content: { collect: (manifests, options) => collect(content, manifests, options) },
          isGone: async (digest) => (await content.size(digest)) === undefined,
          sinceMs: () => nowMs,
        },
        new AbortController().signal,
      )
    await collected(Date.now() + 60_000)
    assert.ok((await count()) > before)
    await collected(Date.now() + 7.1 * 60_000)
    assert.equal(await count(), before)
    assert.ok(kept.length > 0 && (await bytesOf('/images/mine/download')).length > 0)
  })

  const failures: readonly (readonly [string, RegExp, (folder: RemoteFolder, disk: Buffer) => void])[] = [
    ['whose bytes are others', /does not match the SHA-256 checksum/, (folder, disk) => folder.items.set('bad', { bytes: disk, index: { sha256: '0'.repeat(64) } })],
    ['that is longer than it says', /larger than the remote announced/, (folder, disk) => folder.items.set('bad', { bytes: disk, index: { size: 1_000 } })],
    ['that is shorter than it says', /before the end of the file/, (folder, disk) => folder.items.set('bad', { bytes: disk, index: { size: 2 ** 21 } })],
    ['whose file is not there', /answered 404/, (folder, disk) => folder.items.set('bad', { bytes: disk, index: { file: 'none' } })],
    ['of a broken disk', /Unusable disk/, (folder) => folder.items.set('bad', { bytes: Buffer.from('QFI\xfb and nothing', 'latin1') })],
    ['from a remote that is ill', /answered 503/, (folder) => { folder.trick = (_request, response) => !!response.writeHead(503).end() }],
    ['that is sent on to a link-local address', /169\.254\.169\.254.*special/, (folder) => { folder.trick = sendOn('http://169.254.169.254/latest') }],
    ['that is sent on to a decimal address', /10\.0\.0\.1.*private/, (folder) => { folder.trick = sendOn('http://167772161/') }],
    ['that is sent on to another protocol', /not https/, (folder) => { folder.trick = sendOn('file:///etc/passwd') }],
    ['that is sent on for ever', /more than 5 times/, (folder) => { folder.trick = sendOn('bad') }],
  ] // biome-ignore format: rows
  for (const [what, reason, spoil] of failures)
    it(`a pull: ${what} is Failed with the reason, and leaves nothing behind`, async () => {
      spoil(near, serve('bad'))
      const before = (await service.services.content.list({ limit: 1_000 })).items.length
      assert.equal((await pull('bad', 'bad')).status, 202)
      const image = await ended('bad')
      assert.deepEqual([image.state, image.checksum, image.progress], ['Failed', undefined, undefined])
      assert.match(image.errorMessage, reason)
      await eventually(async () => assert.deepEqual(await leftovers(), []))
      assert.equal((await service.services.content.list({ limit: 1_000 })).items.length, before)
      assert.equal((await service.call('DELETE', `${base}/images/bad`)).status, 200)
    })

  it('a pull follows a redirect to another origin of the same kind of address, and verifies the content', async () => {
    const disk = serve('moved')
    far.items.set('moved', { bytes: disk })
    near.trick = sendOn(`${far.url}moved`)
    await pull('near/moved', 'moved')
    assert.equal((await ended('moved')).state, 'Ready')
    assert.ok((await bytesOf('/images/moved/download')).equals(disk))
  })
})

const sendOn =
  (location: string): RemoteFolder['trick'] =>
  (_request, response) =>
    !!response.writeHead(302, { location }).end()

describe('a remote by https', () => {
  it('a remote by https cannot redirect to a name with a private address', async () => {
    const place = { name: 'x', url: new URL('https://host.example/'), authorities: undefined, retry: undefined }
    const inside = new URL(near.url.replace('127.0.0.1', 'localhost'))
    const { signal } = new AbortController()
    await assert.rejects(getFrom({ ...place, allowInsecure: true }, inside, { signal }), /localhost.*loopback address/)
  })

  it('a remote by https is verified with its own authority, and cannot redirect to plain http', async () => {
    const { cert, key } = await makePair()
    await using secure = await startRemote({ cert, key })
    const folder = path.dirname(service.services.partialFolder)
    await fs.writeFile(path.join(folder, 'ca.pem'), cert)
    const bytes = randomBytes(4_096)
    secure.items.set('x', { bytes })
    const open = (remote: object) =>
      Remotes.open(
        parseSettings(JSON.stringify({ remotes: [{ name: 's', url: secure.url, ...remote }] })).remotes,
        folder,
      )
    const { signal } = new AbortController()
    const stranger = await (await open({})).offers('image', signal)
    assert.match(stranger.unavailable[0]?.message ?? '', /certificate is not trusted/)
    const known = await open({ caFile: 'ca.pem' })
    const [offer] = (await known.offers('image', signal)).offers
    assert.equal(offer?.item.sha256, createHash('sha256').update(bytes).digest('hex'))
    secure.trick = sendOn(near.url)
    const file = path.join(folder, 'fetched')
    const came = () => assert.fail('it came')
    const work = { file, signal, progress: () => undefined, waits: () => undefined, take: came, takeFrom: came }
    await assert.rejects(async () => known.source('s')?.fetch(offer.item, work), /not https/)
    await assert.rejects(() => open({ caFile: 'none.pem' }), /caFile of remote "s" cannot be read/)
  })

  const refused: readonly (readonly [object, RegExp])[] = [
    [{ url: 'http://host.example/' }, /plain HTTP: set "allowInsecure"/],
    [{ url: 'oci://host.example' }, /must be an https/],
    [{ url: 'https://user:secret@host.example/' }, /must be an https/],
    [{ url: 'https://host.example/?token=1' }, /must be an https/],
    [{ url: 'https://host.example/', name: 'A/b' }, /remotes\.0\.name/],
    [{ url: 'https://host.example/', insecure: true }, /Unknown setting "remotes.0.insecure"/],
  ]
  for (const [remote, problem] of refused)
    it(`a remote by https cannot be configured as ${JSON.stringify(remote)}`, () => {
      assert.throws(() => parseSettings(JSON.stringify({ remotes: [{ name: 'x', ...remote }] })), problem)
    })
})
