// image and iso download: the path of the file, and -o.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, afterEach, before, beforeEach, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../test/support/stand-ins/api.ts'
import { type Answer, serve } from '../../test/support/stand-ins/fleet.ts'
import { ApiError } from '../api/errors.ts'

const content = Buffer.from('a disk')
const checksum = `sha256:${createHash('sha256').update(content).digest('hex')}`
const record = { name: 'sonoma', checksum, state: 'Ready' }
const download: Answer = (_, response) => {
  response.writeHead(206, {
    'content-length': content.length,
    'content-range': `bytes 0-${content.length - 1}/${content.length}`,
    etag: `"${checksum}"`,
  })
  response.end(content)
}

let service: FakeService
let folder: string
before(async () => {
  service = await startFakeService()
})
after(() => service[Symbol.asyncDispose]())
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-download-'))
  serve(service, {
    'GET images/sonoma': () => record,
    'GET images/sonoma/download': download,
    'GET isos/sonoma': () => record,
    'GET isos/sonoma/download': download,
  })
})
afterEach(() => fs.rmSync(folder, { recursive: true }))
const svc3 = (line: string) =>
  run(line.split(' '), { env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }, workingDir: folder })

for (const word of ['image', 'iso']) {
  it(`${word} download -o json prints the record and nothing else, and saves under the name`, async () => {
    const { exitCode, stdout, stderr } = await svc3(`${word} download sonoma -o json`)
    assert.deepEqual([exitCode, stderr], [0, ''])
    assert.deepEqual(JSON.parse(stdout), [record])
    assert.deepEqual(fs.readdirSync(folder), ['sonoma'])
  })

  it(`${word} download -f FILE saves there; -o FILE is no format`, async () => {
    const wrong = await svc3(`${word} download sonoma -o disk.raw`)
    assert.equal(wrong.exitCode, 2)
    assert.match(wrong.stderr, /"disk\.raw": choose from table, wide, json, yaml/)
    assert.deepEqual(fs.readdirSync(folder), [])
    assert.equal((await svc3(`${word} download sonoma -f disk.raw`)).exitCode, 0)
    assert.deepEqual(fs.readFileSync(path.join(folder, 'disk.raw')), content)
    const again = await svc3(`${word} download sonoma --file disk.raw`)
    assert.match(again.stderr, /already exists\nsvc3: Choose another name with --file, or replace it with --force\n$/)
  })
}

it('image download that fails in the middle leaves only a partial file, and says how to resume', async () => {
  const half: Answer = ({ headers }, response) => {
    if (!headers.range?.startsWith('bytes=0-')) throw new ApiError('Conflict', 'some of it is lost')
    const range = { 'content-range': `bytes 0-${content.length - 1}/${2 * content.length}` }
    response.writeHead(206, { 'content-length': content.length, etag: `"${checksum}"`, ...range })
    response.end(content)
  }
  serve(service, { 'GET images/sonoma': () => record, 'GET images/sonoma/download': half })
  const { exitCode, stderr } = await svc3('image download sonoma')
  const part = `sonoma.${checksum.slice(7, 19)}.part`
  assert.deepEqual([exitCode, fs.readdirSync(folder)], [6, [part]])
  assert.ok(
    stderr.includes(`Partial download kept in ${path.join(folder, part)}. Run the same command to resume`),
    stderr,
  )
  assert.match(stderr, /some of it is lost/)
})

it('image download refuses while another process downloads to the same file, and leaves that one alone', async () => {
  const begun = Promise.withResolvers<void>()
  const more = Promise.withResolvers<void>()
  const slow: Answer = async (asked, response) => {
    begun.resolve()
    await more.promise
    return download(asked, response)
  }
  serve(service, { 'GET images/sonoma': () => record, 'GET images/sonoma/download': slow })
  const first = svc3('image download sonoma')
  await begun.promise
  serve(service, { 'GET images/sonoma': () => record, 'GET images/sonoma/download': download })
  const second = await svc3('image download sonoma')
  const what = `svc3: Process ${process.pid} is already downloading ${path.join(folder, 'sonoma')}\n`
  const next = 'svc3: Wait until it finishes, or choose another path with --file\n'
  assert.deepEqual([second.exitCode, second.stderr], [1, what + next])
  more.resolve()
  assert.equal((await first).exitCode, 0)
  assert.deepEqual(fs.readdirSync(folder), ['sonoma'])
  assert.deepEqual(fs.readFileSync(path.join(folder, 'sonoma')), content)
})

it('image download says which file it cannot write', async () => {
  const { exitCode, stderr } = await svc3('image download sonoma -f none/sonoma')
  assert.equal(exitCode, 1)
  assert.match(
    stderr,
    /^svc3: Cannot write .*\/none\/sonoma\.\w+\.part \(ENOENT\)\nsvc3: Choose another path with --file\n$/,
  )
})

it('set-description takes the text as an argument or with -d, not both', async () => {
  const sent: unknown[] = []
  const describes: Answer = ({ body }) => {
    sent.push(body.description)
    return record
  }
  serve(service, { 'POST images/sonoma/description': describes })
  assert.equal((await svc3('image set-description sonoma Nightly')).exitCode, 0)
  assert.equal((await svc3('image set-description sonoma -d Weekly')).exitCode, 0)
  assert.deepEqual(sent, ['Nightly', 'Weekly'])
  for (const wrong of ['', ' Nightly -d Weekly'])
    assert.equal((await svc3(`image set-description sonoma${wrong}`)).exitCode, 2, wrong)
})
