// Images and ISOs over HTTP, without a network: each operation, and what it leaves behind when it fails.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type Answer, type CallOptions, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { randomDisc } from '../../../../test/support/tools/disc.ts'
import { collectOnce } from '../../../controllers/collect-images.ts'
import { collect } from '../../../images/collect.ts'
import { ContentAwayError, NoContentError } from '../../../images/content/content.ts'
import { chunksOf } from '../../../images/format/manifest.ts'
import { readManifest } from '../../../images/pack/stored-manifests.ts'

const base = '/api/v1/namespaces/svc-default'
const stream = { 'content-type': 'application/octet-stream' }
let service: TestService
before(async () => {
  service = await startService()
})
after(() => service[Symbol.asyncDispose]())

/** A disk with data at both ends, and a hole between. */
function makeDisk(bytes = 3 * 2 ** 20): Buffer {
  const disk = Buffer.alloc(bytes)
  randomBytes(100_000).copy(disk, 65_000)
  randomBytes(512).copy(disk, bytes - 512)
  return disk
}

const upload = (query: string, body: Buffer, kind = 'image', headers: Record<string, string> = {}): Promise<Answer> =>
  service.call('POST', `${base}/upload/${kind}?${query}`, { body, headers: { ...stream, ...headers } })

async function bytesOf(url: string, headers: Record<string, string> = {}) {
  const {
    statusCode,
    rawPayload,
    headers: got,
  } = await service.app.inject({
    method: 'GET',
    url: `${base}${url}`,
    headers: { authorization: `Bearer ${service.adminToken}`, ...headers },
  })
  return { status: statusCode, bytes: rawPayload, headers: got }
}

const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const leftovers = (): Promise<string[]> => fs.readdir(service.services.uploads.folder)

describe('generate', () => {
  it('generate creates an empty amd64 disk that is Ready at once and takes little space', async () => {
    const answer = await service.call('POST', `${base}/images`, { body: { name: 'empty', size: '120G' } })
    assert.equal(answer.status, 202, answer.text)
    const { state, size, type, sourceType, sourceNamespace, owner, checksum, usedBy } = answer.body
    assert.deepEqual(
      [state, size, type, sourceType, sourceNamespace],
      ['Ready', '120G', 'amd64', 'generated', 'svc-default'],
    )
    assert.deepEqual([owner, usedBy], ['admin@example.com', []])
    assert.match(checksum, /^sha256:[0-9a-f]{64}$/)
    const tail = await bytesOf('/images/empty/download', { range: 'bytes=-4096' })
    assert.deepEqual(
      [tail.status, tail.headers['content-range']],
      [206, `bytes ${120 * 2 ** 30 - 4096}-${120 * 2 ** 30 - 1}/${120 * 2 ** 30}`],
    )
    assert.ok(tail.bytes.equals(Buffer.alloc(4096)))
  })

  it('generate names all invalid fields', async () => {
    const answer = await service.call('POST', `${base}/images`, { body: { name: '../etc', size: '1P' } })
    assert.equal(answer.status, 422)
    assert.deepEqual(
      answer.body.details.causes.map(({ field }: { field: string }) => field),
      ['name', 'size'],
    )
  })

  it('generate refuses a name that is taken, and repeats its response to the same request', async () => {
    const headers = { 'idempotency-key': 'k1' }
    const request = { body: { name: 'once', size: '1G' } }
    assert.equal((await service.call('POST', `${base}/images`, { ...request, headers })).status, 202)
    assert.equal((await service.call('POST', `${base}/images`, { ...request, headers })).status, 202)
    const other = await service.call('POST', `${base}/images`, request)
    assert.deepEqual([other.status, other.body.reason], [409, 'AlreadyExists'])
  })
})

describe('names', () => {
  for (const name of ['.', '..', 'A', 'a/b', 'a b', '', 'ü', `${'a'.repeat(60)}.img`, 'a\u0000b'])
    it(`names: ${JSON.stringify(name).slice(0, 20)} is refused everywhere`, async () => {
      for (const [path, body] of [
        ['/images', { name, size: '1G' }],
        ['/images/empty/copy', { name }],
      ] as const) {
        const answer = await service.call('POST', base + path, { body })
        assert.equal(answer.status, 422, answer.text)
      }
      const sent = await upload(`name=${encodeURIComponent(name)}`, Buffer.from('x'))
      assert.equal(sent.status, 422, sent.text)
      assert.deepEqual(await leftovers(), [])
    })
})

describe('upload and download', () => {
  it('upload and download returns every byte of a raw disk, and shows its space', async () => {
    const disk = makeDisk()
    const answer = await upload('name=raw.img&description=Mine&type=arm64', disk)
    assert.equal(answer.status, 201, answer.text)
    const { state, size, type, description, sourceType, spaceUsed, progress } = answer.body
    assert.deepEqual([state, size, type, description, sourceType], ['Ready', '3M', 'arm64', 'Mine', 'userUpload'])
    assert.match(spaceUsed, /^\d+(\.\d)?K$/)
    assert.equal(progress, undefined)
    const got = await bytesOf('/images/raw.img/download')
    assert.equal(got.status, 200)
    assert.equal(hash(got.bytes), hash(disk))
    assert.equal(got.headers.etag, `"${answer.body.checksum}"`)
    assert.equal(got.headers['content-length'], String(disk.length))
    assert.equal(got.headers['content-disposition'], 'attachment; filename="raw.img"')
    assert.deepEqual(await leftovers(), [])
  })

  it('upload and download accepts a form, with fields before or after the file, or only a file name', async () => {
    const disk = makeDisk(2 ** 20)
    const send = async (parts: [string, string | File][]): Promise<Answer> => {
      const form = new FormData()
      for (const [name, value] of parts) form.append(name, value as string)
      const encoded = new Response(form)
      const headers = { 'content-type': encoded.headers.get('content-type') ?? '' }
      return service.call('POST', `${base}/upload/image`, { body: Buffer.from(await encoded.arrayBuffer()), headers })
    }
    const file = new File([new Uint8Array(disk)], 'form.img')
    const first = await send([['image', file]])
    assert.deepEqual([first.status, first.body.name, first.body.source], [201, 'form.img', 'form.img'], first.text)
    const late = await send([['image', file], ['name', 'late'], ['description', 'After'], ['type', 'arm64']]) // biome-ignore format: in the order of the parts
    assert.deepEqual([late.body.name, late.body.description, late.body.type], ['late', 'After', 'arm64'], late.text)
    const early = await send([['name', 'early'], ['image', file]]) // biome-ignore format: in the order of the parts
    assert.equal(early.body.name, 'early', early.text)
    // Equal content has the same checksum.
    assert.deepEqual([late.body.checksum === first.body.checksum, early.body.checksum], [false, first.body.checksum])

    assert.match((await send([['name', 'nothing']])).body.message, /no file in part image/)
    const twice = await send([['image', file], ['image', file], ['name', 'two']]) // biome-ignore format: in the order of the parts
    assert.deepEqual([twice.status, twice.body.reason], [400, 'BadRequest'])
    const taken = await send([['name', 'early'], ['image', file]]) // biome-ignore format: in the order of the parts
    assert.deepEqual([taken.status, taken.body.reason], [409, 'AlreadyExists'])
    const wrong = await send([['image', file], ['type', 'riscv']]) // biome-ignore format: in the order of the parts
    assert.deepEqual([wrong.status, wrong.body.details.causes[0].field], [422, 'type'])
    assert.deepEqual(await leftovers(), [])
  })

  it('upload and download decompresses files', async () => {
    const disk = makeDisk(2 ** 20)
    assert.equal((await upload('name=packed', gzipSync(disk))).status, 201)
    assert.equal(hash((await bytesOf('/images/packed/download')).bytes), hash(disk))
  })

  it('upload and download serves the disk as qcow2, in ranges, with a digest on request', async () => {
    const disk = makeDisk()
    const { body } = await upload('name=both-ways&firmware=uefi', disk)
    const whole = await bytesOf('/images/both-ways/download?format=qcow2')
    assert.deepEqual(
      [whole.status, whole.headers.etag, whole.headers['content-disposition']],
      [200, `"${body.checksum}-qcow2"`, 'attachment; filename="both-ways.qcow2"'],
    )
    assert.ok(whole.bytes.length < disk.length)
    const wants = { 'want-content-digest': 'sha-256=10' }
    const part = await bytesOf('/images/both-ways/download?format=qcow2', { range: 'bytes=100-400000', ...wants })
    const expected = whole.bytes.subarray(100, 400_001)
    assert.ok(part.status === 206 && part.bytes.equals(expected))
    const digest = createHash('sha256').update(expected).digest('base64')
    assert.equal(part.headers['content-digest'], `sha-256=:${digest}:`)
    assert.equal((await upload('name=back', whole.bytes)).status, 201)
    assert.equal(hash((await bytesOf('/images/back/download')).bytes), hash(disk))
    assert.equal((await bytesOf('/images/back/download?format=vmdk')).status, 400)
    const { boot } = JSON.parse((await service.services.content.read(body.checksum, 2 ** 20)).toString())
    assert.deepEqual(boot, { kind: 'firmware', firmware: 'uefi' })
    for (const wrong of ['firmware=coreboot', 'firmware=bios&type=arm64'])
      assert.equal((await upload(`name=no&${wrong}`, disk)).status, 422, wrong)
    const made = await service.call('POST', `${base}/images`, { body: { name: 'uefi', size: '1G', firmware: 'uefi' } })
    const manifest = JSON.parse((await service.services.content.read(made.body.checksum, 2 ** 20)).toString())
    assert.equal(manifest.boot.firmware, 'uefi')
  })

  it('upload and download shows the guest system; macOS boots with UEFI', async () => {
    const manifestOf = async (checksum: string) =>
      JSON.parse((await service.services.content.read(checksum, 2 ** 20)).toString())
    const generate = (body: object) => service.call('POST', `${base}/images`, { body: { size: '1G', ...body } })
    const mac = (await generate({ name: 'mac', os: 'macos' })).body
    assert.equal(mac.os, 'macos')
    const { os, boot } = await manifestOf(mac.checksum)
    assert.deepEqual([os, boot], ['macos', { kind: 'firmware', firmware: 'uefi' }])
    const uploaded = (await upload('name=mac-upload&os=macos', makeDisk())).body
    assert.equal(uploaded.os, 'macos')
    assert.equal((await manifestOf(uploaded.checksum)).boot.firmware, 'uefi')
    assert.equal(
      (await service.call('POST', `${base}/images/mac/copy`, { body: { name: 'mac-copy' } })).body.os,
      'macos',
    )
    const plain = (await generate({ name: 'plain-guest' })).body
    assert.equal(plain.os, 'other')
    assert.equal((await manifestOf(plain.checksum)).os, undefined)
    assert.equal((await generate({ name: 'no', os: 'macos', firmware: 'bios' })).status, 422)
    assert.equal((await generate({ name: 'no', os: 'beos' })).status, 400)
    for (const wrong of ['os=beos', 'os=macos&firmware=bios'])
      assert.equal((await upload(`name=no&${wrong}`, makeDisk())).status, 422, wrong)
  })

  it('upload and download tells with a range where the next data is, without skipping any', async () => {
    const disk = Buffer.alloc(300 * 65_536)
    for (const at of [0, 70_000, 150 * 65_536 + 512, 151 * 65_536, 200 * 65_536]) disk.writeUInt32BE(0xfeedbeef, at)
    assert.equal((await upload('name=holes', disk)).status, 201)
    const got = Buffer.alloc(disk.length)
    let sent = 0
    for (let at = 0; at < disk.length; ) {
      const { status, headers, bytes } = await bytesOf('/images/holes/download', { range: `bytes=${at}-${at + 9_999}` })
      assert.equal(status, 206)
      bytes.copy(got, at)
      sent += bytes.length
      at = Math.max(at + bytes.length, Number(headers['svc3-next-data'] ?? 0))
    }
    assert.ok(got.equals(disk))
    assert.ok(sent < 8 * 65_536, `${sent} bytes were sent`)
  })

  it('upload and download serves a range, and supports If-Range, If-None-Match and HEAD', async () => {
    const disk = makeDisk(200_192)
    disk[0] = 7
    const { body } = await upload('name=ranges', disk)
    const etag = `"${body.checksum}"`
    const size = disk.length
    const path = '/images/ranges/download'
    for (const [range, start, end] of [
      ['bytes=0-0', 0, 1],
      ['bytes=65530-140000', 65_530, 140_001],
      ['bytes=199000-', 199_000, size],
      ['bytes=-10', size - 10, size],
      ['bytes=5-99999999', 5, size],
    ] as const) {
      const got = await bytesOf(path, { range, 'if-range': etag })
      assert.deepEqual([got.status, got.headers['content-range']], [206, `bytes ${start}-${end - 1}/${size}`], range)
      assert.ok(got.bytes.equals(disk.subarray(start, end)), range)
    }
    for (const range of ['bytes=0-1,5-6', 'bytes=9-3', 'lines=1-2', 'bytes=-'])
      assert.equal((await bytesOf(path, { range })).bytes.length, size, range)
    const other = await bytesOf(path, { range: 'bytes=5-', 'if-range': '"sha256:other"' })
    assert.deepEqual([other.status, other.bytes.length], [200, size])
    const behind = await bytesOf(path, { range: `bytes=${size}-` })
    assert.deepEqual([behind.status, behind.headers['content-range']], [416, `bytes */${size}`])
    assert.equal((await bytesOf(path, { 'if-none-match': etag })).status, 304)
    const head = await service.call('HEAD', base + path)
    assert.deepEqual([head.status, head.headers['content-length'], head.text], [200, String(size), ''])
    assert.equal(head.headers.etag, etag)
  })

  it('upload and download names the server that has missing content, to users and to nodes', async (t) => {
    const disk = makeDisk(200_192)
    disk[0] = 7
    const { body } = await upload('name=away', disk)
    const node = await startNode(service, { name: 'fetching' })
    const { content } = service.services
    const manifest: string = body.checksum
    const read = content.read.bind(content)
    const isAway = async (digest: string): Promise<never> => {
      throw new ContentAwayError(digest, 'on any server that answers: the server one:8443 may have it')
    }
    // The manifest is on this server already, the chunks are not.
    t.mock.method(content, 'read', (digest: string, most: number) =>
      digest === manifest ? read(digest, most) : isAway(digest),
    )
    t.mock.method(content, 'size', isAway)
    const path = '/images/away/download'
    const ranged = { range: 'bytes=70000-80000' }
    const asked: [string, CallOptions][] = [
      [base + path, {}],
      [base + path, { headers: ranged }],
      [base + path, { headers: { ...ranged, 'want-content-digest': 'sha-256=1' } }],
      [`/api/v1/agent/blobs/${manifest}`, { token: node.token }],
    ]
    for (const [url, options] of asked) {
      const answer = await service.call('GET', url, options)
      assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5'], url)
      assert.match(answer.body.message, /Some of its content is not on any server that answers: the server one:8443/)
      for (const header of ['etag', 'content-range', 'content-disposition'])
        assert.equal(answer.headers[header], undefined, header)
    }
  })

  it('upload and download reports missing content before the first byte, but not to a client that resumes', async (t) => {
    const disk = Buffer.concat([Buffer.alloc(2 * 2 ** 20), makeDisk(200_192)])
    const { body } = await upload('name=later-away', disk)
    const { content } = service.services
    let isLost = false
    const asked: string[] = []
    content.requireAll = async (digests) => {
      asked.push(...digests)
      throw isLost
        ? new NoContentError(asked[0] ?? '')
        : new ContentAwayError(asked[0] ?? '', 'on any server that answers: the server one:8443 may have it')
    }
    t.after(() => Reflect.deleteProperty(content, 'requireAll'))
    const ranged = { range: 'bytes=0-1023', 'want-content-digest': 'sha-256=1' }
    for (const [query, headers] of [
      ['', {}],
      ['', ranged],
      ['?format=qcow2', {}],
    ] as const) {
      const answer = await service.call('GET', `${base}/images/later-away/download${query}`, { headers })
      assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5'], query)
      for (const header of ['content-range', 'svc3-next-data']) assert.equal(answer.headers[header], undefined, header)
    }
    const chunks = [...chunksOf(await readManifest(content, body.checksum))].map(({ digest }) => digest)
    assert.deepEqual(new Set(asked), new Set(chunks))
    assert.equal((await bytesOf('/images/later-away/download', { range: 'bytes=2097152-2097160' })).status, 206)
    isLost = true
    const lost = await service.call('GET', `${base}/images/later-away/download`)
    assert.deepEqual([lost.status, lost.body.hint], [409, 'Delete the image and upload it again'])
    const isLogged = (line: string): boolean => line.includes('a request failed') && line.includes('"status":409')
    assert.ok(service.logLines.some(isLogged))
  })

  it('upload and download refuses a name that is taken before the body is sent', async () => {
    await service.call('POST', `${base}/images`, { body: { name: 'taken', size: '1G' } })
    const answer = await upload('name=taken', makeDisk())
    assert.deepEqual([answer.status, answer.body.reason], [409, 'AlreadyExists'])
    assert.match((await upload('', Buffer.from('x'))).body.message, /name is required/)
    assert.match((await upload('name=nothing', Buffer.alloc(0))).body.message, /empty/)
    assert.deepEqual(await leftovers(), [])
  })

  it('upload and download creates one image from two concurrent uploads of one name', async () => {
    const disks = [makeDisk(), makeDisk()]
    const answers = await Promise.all(disks.map((disk) => upload('name=race', disk)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409])
    const won = disks[answers.findIndex(({ status }) => status === 201)] as Buffer
    assert.equal(hash((await bytesOf('/images/race/download')).bytes), hash(won))
    assert.deepEqual(await leftovers(), [])
  })

  it('upload and download returns its image to a repeated request', async () => {
    const disk = makeDisk(2 ** 20)
    const headers = { 'idempotency-key': 'again' }
    const [first, second] = [
      await upload('name=again', disk, 'image', headers),
      await upload('name=again', disk, 'image', headers),
    ]
    assert.deepEqual([first.status, second.status, second.body], [201, 201, first.body])
  })
})

describe('hostile disks', () => {
  const header = (change: (head: Buffer) => void): Buffer => {
    const file = Buffer.alloc(4 * 65_536)
    file.write('QFI\xfb', 'latin1')
    file.writeUInt32BE(3, 4)
    file.writeUInt32BE(16, 20)
    file.writeBigUInt64BE(2n ** 30n, 24)
    file.writeUInt32BE(2, 36)
    file.writeBigUInt64BE(65_536n, 40)
    file.writeBigUInt64BE(131_072n, 48)
    file.writeUInt32BE(1, 56)
    file.writeUInt32BE(4, 96)
    file.writeUInt32BE(104, 100)
    change(file)
    return file
  }
  const attacks: Readonly<Record<string, (head: Buffer) => void>> = {
    'a backing file': (head) => {
      head.writeBigUInt64BE(200n, 8)
      head.writeUInt32BE(11, 16)
      head.write('/etc/passwd', 200)
    },
    'a json: backing file': (head) => {
      head.writeBigUInt64BE(200n, 8)
      head.writeUInt32BE(27, 16)
      head.write('json:{"driver":"file","f":1}', 200)
    },
    'an external data file': (head) => head.writeBigUInt64BE(4n, 72),
    encryption: (head) => head.writeUInt32BE(1, 32),
    'internal snapshots': (head) => head.writeUInt32BE(1, 60),
    'a disk of 1 PiB': (head) => head.writeBigUInt64BE(2n ** 50n, 24),
    'tables outside of the file': (head) => head.writeBigUInt64BE(2n ** 40n, 65_536),
  }
  for (const [what, change] of Object.entries(attacks))
    it(`hostile disks: ${what}: refused, and nothing is left behind`, async () => {
      const { rev } = await service.services.store.list('/images/')
      const before = (await service.services.store.list('/images/')).entries.length
      const answer = await upload('name=hostile', header(change))
      assert.deepEqual([answer.status, answer.body.reason], [422, 'Invalid'], answer.text)
      assert.match(answer.body.message, /Unusable disk/)
      assert.doesNotMatch(answer.text, /passwd|\/tmp/)
      assert.equal((await service.services.store.list('/images/')).entries.length, before, rev)
      assert.equal((await service.call('GET', `${base}/images/hostile`)).status, 404)
      assert.deepEqual(await leftovers(), [])
    })

  it('hostile disks: a file that would fill the disk of the server is refused', async (t) => {
    const [bsize, mib] = [4_096, 2 ** 20]
    const disk = { ...(await fs.statfs('.')), bsize, blocks: (1_024 * mib) / bsize, bavail: (64 * mib) / bsize }
    t.mock.method(fs, 'statfs', async () => disk)
    const refused = await upload('name=most', gzipSync(Buffer.alloc(32 * mib, 1)))
    assert.deepEqual([refused.status, refused.body.reason], [422, 'Invalid'], refused.text)
    assert.match(refused.body.message, /expands to more/)
    assert.equal((await upload('name=some', gzipSync(Buffer.alloc(8 * mib, 1)))).status, 201)
    assert.deepEqual(await leftovers(), [])
  })

  it('hostile disks: a plain disk made the same way is accepted', async () => {
    const answer = await upload(
      'name=plain',
      header(() => undefined),
    )
    assert.deepEqual([answer.status, answer.body.size], [201, '1G'], answer.text)
  })
})

describe('copy, describe, delete', () => {
  it('copy, describe, delete: a copy is immediate, has the same content, and names its source', async () => {
    await upload('name=original&description=Golden', makeDisk(2 ** 20))
    const { body: original } = await service.call('GET', `${base}/images/original`)
    const copy = await service.call('POST', `${base}/images/original/copy`, { body: { newName: 'copied' } })
    assert.deepEqual(
      [copy.status, copy.body.checksum, copy.body.description, copy.body.source],
      [202, original.checksum, 'Copied from Golden', 'original'],
    )
    assert.equal((await service.call('POST', `${base}/images/original/copy`, { body: {} })).status, 400)
    assert.equal((await service.call('POST', `${base}/images/none/copy`, { body: { name: 'x' } })).status, 404)
    assert.equal((await service.call('DELETE', `${base}/images/original`)).status, 200)
    assert.equal(hash((await bytesOf('/images/copied/download')).bytes).length, 64)
  })

  it('copy, describe, delete: describes', async () => {
    await service.call('POST', `${base}/images`, { body: { name: 'plain-one', size: '1G' } })
    const text = 'Für Releases — “any” text\n'
    const { status, body } = await service.call('POST', `${base}/images/plain-one/description`, {
      body: { description: text },
    })
    assert.deepEqual([status, body.description], [200, text])
    const long = await service.call('POST', `${base}/images/plain-one/description`, {
      body: { description: 'x'.repeat(1_025) },
    })
    assert.equal(long.status, 422)
  })

  it('copy, describe, delete refuses to delete an image that VMs use, or that is being written', async () => {
    await using fresh = await startService()
    await using _ = startScheduler(fresh)
    const node = await startNode(fresh)
    await fresh.call('POST', `${base}/upload/image?name=used`, { body: makeDisk(2 ** 20), headers: stream })
    const { body: image } = await fresh.call('GET', `${base}/images/used`)
    await fresh.call('POST', `${base}/vms`, { body: { image: 'used', name: 'vm-1' } })
    // Both the desired state and the VM's record name the content.
    const wanted = node.told.flatMap((message) => (message.type === 'VM' ? [message.vm.image] : []))
    assert.deepEqual(wanted.at(-1), { name: 'used', content: image.checksum, sizeBytes: 2 ** 20 })
    const refused = await fresh.call('DELETE', `${base}/images/used`)
    assert.deepEqual([refused.status, refused.body.reason], [409, 'Conflict'])
    assert.match(refused.body.message, /used by svc-default\/vm-1/)
    await fresh.call('DELETE', `${base}/vms/vm-1`)
    assert.equal((await fresh.call('DELETE', `${base}/images/used`)).status, 200)

    await addImage(fresh, 'busy', 'amd64')
    const entry = fresh.services.collections.images.get('', 'busy')
    assert.ok(entry)
    await fresh.services.collections.images.update(entry, { ...entry.value, state: 'Updating' })
    for (const [method, path, body] of [
      ['DELETE', '/images/busy', undefined],
      ['POST', '/images/busy/copy', { name: 'busy-2' }],
      ['GET', '/images/busy/download', undefined],
      ['POST', '/vms', { image: 'busy' }],
    ] as const)
      assert.equal((await fresh.call(method, base + path, { body })).status, 409, path)
  })

  it('copy, describe, delete: an image that nodes build cannot be downloaded', async () => {
    await addImage(service, 'tiny-amd64', 'amd64')
    const answer = await service.call('GET', `${base}/images/tiny-amd64/download`)
    assert.deepEqual([answer.status, answer.body.reason], [409, 'Conflict'])
  })
})

describe('ISOs', () => {
  it('ISOs are unchanged files, in a separate collection', async () => {
    const file = randomDisc(100_001)
    const answer = await upload('name=odd.iso', file, 'iso')
    assert.deepEqual([answer.status, answer.body.size, answer.body.type], [201, '98K', 'amd64'], answer.text)
    assert.ok((await bytesOf('/isos/odd.iso/download')).bytes.equals(file))
    assert.equal((await service.call('GET', `${base}/images/odd.iso`)).status, 404)
    assert.equal((await service.call('POST', `${base}/isos/odd.iso/copy`, { body: { name: 'even.iso' } })).status, 202)
    const { body } = await service.call('GET', `${base}/isos`)
    assert.deepEqual(
      body.items.map(({ name }: { name: string }) => name),
      ['even.iso', 'odd.iso'],
    )
    assert.equal((await service.call('DELETE', `${base}/isos/odd.iso`)).status, 200)
    assert.ok((await bytesOf('/isos/even.iso/download')).bytes.equals(file))
  })

  it('an ISO that is not a disc is refused with 422 and a hint, and leaves nothing behind', async () => {
    const answer = await upload('name=no.iso', randomBytes(100_000), 'iso')
    assert.deepEqual([answer.status, answer.body.reason], [422, 'Invalid'], answer.text)
    assert.match(
      answer.body.message,
      /^Unusable ISO: it is not a disc image \(ISO 9660, UDF, or an installer of Apple\)/,
    )
    assert.equal(answer.body.details.causes[0].field, 'iso')
    assert.match(answer.body.hint, /^Upload an \.iso file/)
    assert.equal((await service.call('GET', `${base}/isos/no.iso`)).status, 404)
  })

  it('ISOs are sent to the node of a VM, and cannot be deleted while the VM has them', async () => {
    await using fresh = await startService()
    await using _ = startScheduler(fresh)
    const node = await startNode(fresh)
    await fresh.call('POST', `${base}/images`, { body: { name: 'empty', size: '1G' } })
    const { body: iso } = await fresh.call('POST', `${base}/upload/iso?name=a.iso`, {
      body: randomDisc(40_000),
      headers: stream,
    })
    const vm = await fresh.call('POST', `${base}/vms`, { body: { image: 'empty', iso: 'a.iso', name: 'installing' } })
    assert.equal(vm.status, 201, vm.text)
    const wanted = node.told.flatMap((message) => (message.type === 'VM' ? [message.vm] : []))
    assert.deepEqual([wanted.at(-1)?.iso, wanted.at(-1)?.isoContent], ['a.iso', iso.checksum])
    const refused = await fresh.call('DELETE', `${base}/isos/a.iso`)
    assert.deepEqual([refused.status, /svc-default\/installing/.test(refused.body.message)], [409, true])
  })
})

describe('the collector', () => {
  it('the collector frees unreferenced content once it is old and no upload is in progress', async () => {
    await using fresh = await startService()
    const { content, uploads } = fresh.services
    const count = async () => (await content.list({ limit: 1_000 })).items.length
    const run = (sinceMs: number): Promise<number> =>
      collectOnce(
        fresh.services,
        {
          content: { collect: (manifests, options) => collect(content, manifests, options) },
          isGone: async (digest) => (await content.size(digest)) === undefined,
          sinceMs: () => sinceMs,
        },
        new AbortController().signal,
      )
    const send = (name: string) =>
      fresh.call('POST', `${base}/upload/image?name=${name}`, { body: makeDisk(2 ** 20), headers: stream })
    await send('kept')
    await send('gone')
    await fresh.call('POST', `${base}/images/gone/copy`, { body: { name: 'copy' } })
    await fresh.call('DELETE', `${base}/images/gone`)
    const all = await count()
    const later = Date.now() + 11 * 60_000
    assert.equal(await run(later), 0, 'a copy has it')
    await fresh.call('DELETE', `${base}/images/copy`)
    assert.equal(await run(Date.now()), 0, 'it is new')
    const held = uploads.hold()
    const startMs = uploads.oldestStartMs()
    await new Promise((resolve) => setTimeout(resolve, 5))
    assert.equal(uploads.oldestStartMs(), startMs)
    held[Symbol.dispose]()
    assert.ok(uploads.oldestStartMs() > startMs)
    assert.ok((await run(later)) >= 2)
    assert.ok((await count()) < all)
    const { status } = await fresh.call('GET', `${base}/images/kept/download`)
    assert.equal(status, 200)
  })
})

describe('agents', () => {
  it('agents read stored manifests and chunks by digest, and nothing else', async () => {
    await using fresh = await startService()
    const { token } = await startNode(fresh)
    const { body } = await fresh.call('POST', `${base}/upload/image?name=x`, {
      body: makeDisk(2 ** 20),
      headers: stream,
    })
    const get = (digest: string, headers: Record<string, string> = {}) =>
      fresh.call('GET', `/api/v1/agent/blobs/${encodeURIComponent(digest)}`, { token, headers })
    const manifest = await get(body.checksum)
    assert.equal(manifest.status, 200, manifest.text)
    assert.equal(`sha256:${hash(Buffer.from(manifest.text))}`, body.checksum)
    const part = await get(body.checksum, { range: 'bytes=2-5' })
    assert.deepEqual([part.status, part.text], [206, manifest.text.slice(2, 6)])
    for (const wrong of [`sha256:${'0'.repeat(64)}`, '../../svc3.db', 'sha256:..', 'x'])
      assert.equal((await get(wrong)).status, 404, wrong)
    const asDev = await fresh.call('GET', `/api/v1/agent/blobs/${body.checksum}`, { token: fresh.devToken })
    assert.equal(asDev.status, 403)
  })
})
