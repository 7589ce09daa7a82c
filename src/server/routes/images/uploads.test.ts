// Resumable uploads: by offset, after interruptions and restarts, only for their owner, and for a limited time.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import http from 'node:http'
import { after, before, describe, it } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import { type Answer, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { randomDisc } from '../../../../test/support/tools/disc.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import { PartialUploads } from '../../transfer/partial-uploads.ts'

const base = '/api/v1/namespaces/svc-default'
const octets = { 'content-type': 'application/octet-stream' }
let service: TestService
let address: string
before(async () => {
  service = await startService()
  address = await service.listen()
})
after(() => service[Symbol.asyncDispose]())

const begin = (name: string, size: number, more: object = {}, token?: string): Promise<Answer> =>
  service.call('POST', `${base}/uploads`, {
    body: { kind: 'image', name, size, key: `key of ${name}`, ...more },
    ...(token && { token }),
  })
const put = (id: string, offset: number, body: Buffer, token?: string): Promise<Answer> =>
  service.call('PUT', `${base}/uploads/${id}?offset=${offset}`, { body, headers: octets, ...(token && { token }) })
const finish = (id: string, body: object = {}): Promise<Answer> =>
  service.call('POST', `${base}/uploads/${id}/finish`, { body })
const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
const download = async (url: string): Promise<Buffer> =>
  (await service.app.inject({ url: `${base}${url}`, headers: { authorization: `Bearer ${service.adminToken}` } }))
    .rawPayload
const files = (): Promise<string[]> => fs.readdir(service.services.partialFolder)

describe('an upload', () => {
  it('an upload arrives in parts, is found again by its key, and becomes an equal disk', async () => {
    const disk = randomBytes(3 * 2 ** 20)
    disk.fill(0, 2 ** 20, 2 * 2 ** 20)
    const begun = await begin('parts', disk.length, { type: 'arm64', description: 'In parts', firmware: 'uefi' })
    assert.deepEqual([begun.status, begun.body.offset], [201, 0], begun.text)
    const { id } = begun.body
    assert.equal((await put(id, 0, disk.subarray(0, 2 * 2 ** 20))).body.offset, 2 * 2 ** 20)
    const again = await begin('parts', disk.length)
    assert.deepEqual([again.status, again.body.id, again.body.offset], [200, id, 2 * 2 ** 20])
    for (const offset of [0, 5, disk.length]) {
      const wrong = await put(id, offset, disk.subarray(0, 10))
      assert.deepEqual([wrong.status, wrong.body.reason], [409, 'Conflict'], wrong.text)
    }
    const early = await finish(id)
    assert.deepEqual(
      [early.status, early.body.message],
      [409, `Upload is incomplete: ${2 * 2 ** 20} of ${disk.length} bytes received`],
    )
    assert.equal((await put(id, 2 * 2 ** 20, disk.subarray(2 * 2 ** 20))).status, 200)
    const done = await finish(id, { sha256: hash(disk) })
    assert.equal(done.status, 201, done.text)
    assert.deepEqual(
      [done.body.state, done.body.type, done.body.description, done.body.sourceType],
      ['Ready', 'arm64', 'In parts', 'userUpload'],
    )
    assert.ok((await download('/images/parts/download')).equals(disk))
    // A client that missed the response repeats the request without creating a second image.
    assert.deepEqual([(await finish(id)).body.checksum, await files()], [done.body.checksum, [`upload-${id}.json`]])
    assert.equal((await begin('parts', disk.length)).status, 409)
  })

  it('an upload causes an event about its image or ISO', async () => {
    for (const [kind, name] of [
      ['image', 'told'],
      ['iso', 'told.iso'],
    ] as const) {
      // biome-ignore format: rows
      const { body: { id } } = await begin(name, 40_960, { kind }) // biome-ignore format: one look
      await put(id, 0, randomDisc(40_960))
      assert.equal((await finish(id)).status, 201)
    }
    const { items } = (await service.call('GET', `${base}/events`)).body
    const told = items.filter(({ involved }: { involved: { name: string } }) => involved.name.startsWith('told'))
    assert.deepEqual(
      told.map(({ involved, message }: { involved: { kind: string }; message: string }) => [involved.kind, message]),
      [
        ['images', 'admin@example.com uploaded image told'],
        ['isos', 'admin@example.com uploaded ISO told.iso'],
      ],
    )
  })

  it('an upload keeps the bytes before an interruption, and the next connection takes over', async () => {
    const disk = randomBytes(4 * 2 ** 20)
    const { body: { id } } = await begin('cut', disk.length) // biome-ignore format: one look
    const start = (offset: number): http.ClientRequest => {
      const request = http.request(`${address}${base}/uploads/${id}?offset=${offset}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${service.adminToken}`, 'content-length': disk.length - offset, ...octets },
      })
      return request.on('error', () => undefined)
    }
    const offset = async (): Promise<number> => (await service.call('GET', `${base}/uploads/${id}`)).body.offset
    const first = start(0)
    first.write(disk.subarray(0, 2 ** 20))
    await eventually(async () => assert.equal(await offset(), 2 ** 20))
    first.destroy()
    // A half-open connection, on which nothing is sent any longer.
    const second = start(2 ** 20)
    second.write(disk.subarray(2 ** 20, 2 * 2 ** 20))
    await eventually(async () => assert.equal(await offset(), 2 * 2 ** 20))
    assert.equal((await put(id, 2 * 2 ** 20, disk.subarray(2 * 2 ** 20))).status, 200)
    second.destroy()
    assert.equal((await finish(id, { sha256: hash(disk) })).status, 201)
    assert.ok((await download('/images/cut/download')).equals(disk))
  })

  it('an upload is accessible only to its owner', async () => {
    const { body: { id } } = await begin('mine', 100) // biome-ignore format: one look
    const { devToken: token } = service
    assert.equal((await put(id, 0, Buffer.alloc(10), token)).status, 404)
    for (const [method, path] of [['GET', ''], ['DELETE', ''], ['POST', '/finish']] as const) // biome-ignore format: rows
      assert.equal((await service.call(method, `${base}/uploads/${id}${path}`, { token })).status, 404)
    const theirs = await begin('mine', 100, {}, token)
    assert.ok(theirs.status === 201 && theirs.body.id !== id)
    for (const odd of ['..', '%2e%2e%2fsvc3.db', `${id}.json`, 'x'])
      assert.equal((await service.call('GET', `${base}/uploads/${odd}`)).status, 404, odd)
    assert.equal((await service.call('DELETE', `${base}/uploads/${id}`)).status, 200)
    assert.equal((await service.call('DELETE', `${base}/uploads/${theirs.body.id}`, { token })).status, 200)
  })

  it('an upload with invalid fields is refused immediately', async () => {
    for (const name of ['.', '..', 'A', 'a/b', 'a b', '../../etc/passwd', 'ü', 'a\u0000b', 'a'.repeat(64)])
      assert.equal((await begin(name, 10)).status, 422, name)
    assert.equal((await begin('arm', 10, { type: 'arm64', firmware: 'bios' })).status, 422)
    assert.equal((await begin('large', 2 ** 52)).status, 413)
    const { body: { id } } = await begin('short', 10) // biome-ignore format: one look
    assert.equal((await put(id, 0, Buffer.alloc(11))).status, 413)
    assert.equal((await service.call('DELETE', `${base}/uploads/${id}`)).status, 200)
  })

  it('an upload without progress reserves no disk space after five minutes', async (t) => {
    const [bsize, gib] = [4_096, 2 ** 30]
    const disk = { ...(await fs.statfs('.')), bsize, blocks: (100 * gib) / bsize, bavail: (50 * gib) / bsize }
    t.mock.method(fs, 'statfs', async () => disk)
    const { body: { id } } = await begin('hoard', 48 * gib) // biome-ignore format: one look
    assert.equal((await begin('late', 2 * gib)).status, 413)
    service.clock.nowMs += 4 * 60_000
    assert.equal((await put(id, 0, Buffer.alloc(10, 1))).status, 200)
    service.clock.nowMs += 4 * 60_000
    assert.equal((await begin('late', 2 * gib)).status, 413)
    service.clock.nowMs += 2 * 60_000
    const late = await begin('late', 2 * gib)
    assert.equal(late.status, 201, late.text)
    assert.equal((await put(id, 10, Buffer.alloc(10, 1))).body.offset, 20)
    for (const each of [id, late.body.id]) await service.call('DELETE', `${base}/uploads/${each}`)
  })

  it('an upload is refused if unfinished ones of its caller or its namespace leave others too little of the disk', async (t) => {
    const [bsize, gib] = [4_096, 2 ** 30]
    const disk = { ...(await fs.statfs('.')), bsize, blocks: (100 * gib) / bsize, bavail: (105 * gib) / bsize }
    t.mock.method(fs, 'statfs', async () => disk)
    const token = await service.tokenFor({ kind: 'user', name: 'hoarder@example.com', admin: true })
    const begun = await begin('most', 70 * gib, {}, token)
    assert.equal(begun.status, 201, begun.text)
    const more = await begin('more', 10 * gib, {}, token)
    assert.equal(more.status, 413)
    assert.equal(more.body.message, 'Unfinished uploads of this caller would have 80 GiB')
    const neighbour = await begin('more', 10 * gib)
    assert.equal(neighbour.body.message, 'Unfinished uploads of this namespace would have 80 GiB')
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-apart' } })
    const body = { kind: 'image', name: 'more', size: 10 * gib, key: 'more' }
    const apart = await service.call('POST', '/api/v1/namespaces/svc-apart/uploads', { body })
    assert.equal(apart.status, 201, apart.text)
    await service.call('DELETE', `/api/v1/namespaces/svc-apart/uploads/${apart.body.id}`)
    await service.call('DELETE', `${base}/uploads/${begun.body.id}`, { token })
  })

  it('an upload keeps only the fields that it knows', async () => {
    const { body: { id } } = await begin('strict', 10, { note: 'x'.repeat(100_000), isDone: true, caller: 'other' }) // biome-ignore format: one look
    const kept = JSON.parse(await fs.readFile(`${service.services.partialFolder}/upload-${id}.json`, 'utf8'))
    const known = ['caller', 'id', 'key', 'kind', 'name', 'namespace', 'size', 'updatedAt']
    assert.deepEqual(Object.keys(kept).sort(), known)
    await service.call('DELETE', `${base}/uploads/${id}`)
  })

  it('an upload with a wrong checksum or of an invalid disk is removed', async () => {
    for (const [name, bytes, body] of [
      ['wrong', Buffer.from('a disk'), { sha256: '0'.repeat(64) }],
      ['broken', Buffer.from('QFI\xfb and nothing', 'latin1'), {}],
    ] as const) {
      const { body: { id } } = await begin(name, bytes.length) // biome-ignore format: one look
      await put(id, 0, bytes)
      assert.equal((await finish(id, body)).status, 422)
      assert.equal((await service.call('GET', `${base}/uploads/${id}`)).status, 404)
      assert.equal((await service.call('GET', `${base}/images/${name}`)).status, 404)
    }
  })

  it('an upload decompresses zstd', async () => {
    const disk = randomBytes(2 ** 18)
    const packed = zstdCompressSync(disk)
    const { body: { id } } = await begin('zstd', packed.length) // biome-ignore format: one look
    await put(id, 0, packed)
    assert.equal((await finish(id)).status, 201)
    assert.ok((await download('/images/zstd/download')).equals(disk))
  })

  it('an upload survives a restart, expires after a day, and a caller has at most twenty', async () => {
    const { partialFolder, partialUploads } = service.services
    for (const name of await files()) await fs.rm(`${partialFolder}/${name}`)
    const { body: { id } } = await begin('left', 100) // biome-ignore format: one look
    await put(id, 0, Buffer.alloc(10, 1))
    const reopened = new PartialUploads(partialFolder, service.clock)
    assert.equal(await reopened.offset(id), 10)
    assert.equal((await reopened.list())[0]?.name, 'left')
    await fs.writeFile(`${partialFolder}/upload-${'0'.repeat(32)}`, 'without a note')
    service.clock.nowMs += 23 * 3_600_000
    assert.equal(await reopened.expire(), 0)
    assert.deepEqual((await files()).sort(), [`upload-${id}`, `upload-${id}.json`])
    service.clock.nowMs += 2 * 3_600_000
    assert.equal(await partialUploads.expire(), 1)
    assert.deepEqual(await files(), [])
    const token = await service.tokenFor({ kind: 'user', name: 'many@example.com', admin: true })
    for (let count = 0; count < 22; count += 1) {
      service.clock.nowMs += 1_000
      assert.equal((await begin(`many-${count}`, 10, {}, token)).status, 201)
    }
    const kept = (await partialUploads.list()).map(({ name }) => name)
    assert.deepEqual([kept.length, kept.includes('many-0'), kept.includes('many-21')], [20, false, true])
  })
})
