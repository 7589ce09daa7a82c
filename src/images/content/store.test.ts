// The store: whole or not there, checked when read; also under kill -9, on a full disk, and beside the collector.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { collect, isCollectable } from '../collect.ts'
import { digestOf } from '../format/manifest.ts'
import type { ContentStore } from './content.ts'
import { NoContentError, WrongContentError } from './content.ts'
import { openContentFolder } from './store.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-store-'))
after(() => fs.rm(root, { recursive: true, force: true }))
const fresh = async () => openContentFolder(await fs.mkdtemp(path.join(root, 's')))

async function* pieces(content: Buffer, size = 1_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size)
}
async function gathered(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const found: Buffer[] = []
  for await (const piece of stream) found.push(piece)
  return Buffer.concat(found)
}
const all = async (store: ContentStore, digest: string) => gathered(store.open(digest))
const fileOf = (store: ContentStore, digest: string) =>
  path.join(store.folder, 'blobs/sha256', digest.slice(7, 9), digest.slice(9))
const filesIn = async (folder: string) =>
  (await fs.readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())

describe('the content store', () => {
  it('the content store keeps bytes and streams under their digest', async () => {
    const store = await fresh()
    const content = randomBytes(5_000)
    const stored = await store.put(pieces(content))
    assert.deepEqual(stored, { digest: digestOf(content), bytes: 5_000 })
    assert.deepEqual(await store.put(content), stored)
    assert.deepEqual(await all(store, stored.digest), content)
    assert.deepEqual(await store.read(stored.digest, 5_000), content)
    assert.deepEqual(await gathered(store.open(stored.digest, { start: 10, end: 30 })), content.subarray(10, 30))
    assert.equal(await store.size(stored.digest), 5_000)
    assert.equal((await filesIn(store.folder)).length, 1)
    assert.equal(await store.delete(stored.digest), true)
    assert.equal(await store.delete(stored.digest), false)
    assert.equal(await store.has(stored.digest), false)
    await assert.rejects(all(store, stored.digest), NoContentError)
  })

  it('the content store accepts parallel puts of the same content', async () => {
    const store = await fresh()
    const content = randomBytes(300_000)
    const puts = Array.from({ length: 20 }, (_, index) => store.put(index % 2 === 0 ? content : pieces(content)))
    for (const { digest } of await Promise.all(puts)) assert.equal(digest, digestOf(content))
    assert.equal((await filesIn(store.folder)).length, 1)
  })

  it('the content store refuses content that does not match its digest or size, and keeps none of it', async () => {
    const store = await fresh()
    const content = randomBytes(10_000)
    const digest = digestOf(content)
    const other = digestOf('other')
    await assert.rejects(store.putExpected({ digest: other, bytes: 10_000 }, pieces(content)), WrongContentError)
    await assert.rejects(store.putExpected({ digest: other, bytes: 10_000 }, content), WrongContentError)
    await assert.rejects(store.putExpected({ digest, bytes: 9_999 }, pieces(content)), WrongContentError)
    await assert.rejects(store.putExpected({ digest, bytes: 10_001 }, pieces(content)), WrongContentError)
    await assert.rejects(store.put(pieces(content), { maxBytes: 5_000 }), WrongContentError)
    await assert.rejects(store.putExpected({ digest: 'sha256:../../x', bytes: 1 }, pieces(content)), TypeError)
    await assert.rejects(store.put(pieces(content), { signal: AbortSignal.abort() }), { name: 'AbortError' })
    assert.deepEqual(await filesIn(store.folder), [])
    await store.putExpected({ digest, bytes: 10_000 }, pieces(content))
    assert.equal(await store.has(digest), true)
  })

  it('the content store detects damage, and repairs it with the next put', async () => {
    const store = await fresh()
    const content = randomBytes(2_000_000)
    const { digest } = await store.put(content)
    const damaged = Buffer.from(content)
    damaged[1_500_000] = (damaged[1_500_000] ?? 0) ^ 1
    await fs.writeFile(fileOf(store, digest), damaged)
    await assert.rejects(all(store, digest), WrongContentError)
    await assert.rejects(store.read(digest, 2_000_000), WrongContentError)
    await assert.rejects(store.read(digest, 1_999_999), /more than the 1999999 declared/)
    await store.put(content)
    assert.deepEqual(await all(store, digest), content)
  })

  it('the content store lists in order, page by page', async () => {
    const store = await fresh()
    const made = await Promise.all(Array.from({ length: 25 }, (_, index) => store.put(Buffer.from(`content ${index}`))))
    const listed: string[] = []
    for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
      const page = await store.list({ after, limit: 10 })
      listed.push(...page.items.map(({ digest }) => digest))
      after = page.after
    }
    assert.deepEqual(listed, made.map(({ digest }) => digest).sort())
  })
})

/** Runs code with `store` and `fs` in a child process, and returns how that ends. */
async function run(code: string, folder: string, env: Record<string, string> = {}, wrap: readonly string[] = []) {
  const storeModule = path.join(import.meta.dirname, 'store.ts')
  const text = `import fs from 'node:fs/promises'
    import { openContentFolder } from ${JSON.stringify(storeModule)}
    const store = await openContentFolder(${JSON.stringify(folder)})
    ${code}`
  const [program = '', ...args] = [...wrap, process.execPath, '--input-type=module', '-e', text]
  const child = spawn(program, args, {
    env: { ...process.env, SVC3_TEST: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: Buffer[] = []
  child.stdout.on('data', (data: Buffer) => output.push(data))
  child.stderr.on('data', (data: Buffer) => output.push(data))
  const [code_, signal] = (await once(child, 'close')) as [number | null, string | null]
  return { code: code_, signal, output: Buffer.concat(output).toString() }
}

describe('a store whose process is killed', () => {
  for (const point of ['images.put.write', 'images.put.rename']) {
    it(`a store whose process is killed has nothing of an unfinished put (${point})`, async () => {
      const folder = await fs.mkdtemp(path.join(root, 'k'))
      const put =
        'await store.put((async function* () { yield Buffer.alloc(100_000, 1); yield Buffer.alloc(100_000, 2) })())'
      const { signal } = await run(put, folder, { SVC3_FAILPOINT: point })
      assert.equal(signal, 'SIGKILL')
      const left = await filesIn(folder)
      assert.equal(left.length, 1)
      assert.match(left[0]?.name ?? '', /^\.unfinished-/)
      const store = await openContentFolder(folder)
      assert.deepEqual(await filesIn(folder), [])
      assert.deepEqual((await store.list({ limit: 10 })).items, [])
    })
  }

  it('a store whose process is killed keeps the temporary files of living processes', async () => {
    const folder = await fs.mkdtemp(path.join(root, 'l'))
    const store = await openContentFolder(folder)
    const content = Buffer.alloc(10_000, 7)
    await store.put(
      (async function* () {
        yield content.subarray(0, 5_000)
        const { code } = await run('', folder)
        assert.equal(code, 0)
        yield content.subarray(5_000)
      })(),
    )
    assert.equal(await store.has(digestOf(content)), true)
  })

  it('a store whose process is killed has content whose deleting was not finished', async () => {
    const folder = await fs.mkdtemp(path.join(root, 'd'))
    const code = "const { digest } = await store.put(Buffer.from('kept')); await store.deleteUnused(digest, Infinity)"
    const { signal } = await run(code, folder, { SVC3_FAILPOINT: 'images.delete' })
    assert.equal(signal, 'SIGKILL')
    const store = await openContentFolder(folder)
    assert.deepEqual((await store.read(digestOf('kept'), 10)).toString(), 'kept')
    assert.equal((await filesIn(folder)).length, 1)
  })
})

describe('a store on a full disk', () => {
  it('a store on a full disk reports it, keeps no incomplete content, and works again with free space', async () => {
    const folder = await fs.mkdtemp(path.join(root, 'f'))
    const code = `
      const { digest } = await store.put(Buffer.alloc(4_000_000, 1))
      const full = await store.put(Buffer.alloc(6_000_000, 2)).catch((error) => error)
      const left = (await fs.readdir(store.folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
      const isReadable = (await store.read(digest, 4_000_000)).length === 4_000_000
      await store.delete(digest)
      const again = await store.put(Buffer.alloc(6_000_000, 2))
      console.log(JSON.stringify({ name: full.name, message: full.message, left: left.length, isReadable, bytes: again.bytes }))`
    const mount = ['sh', '-c', 'mount -t tmpfs -o size=8m tmpfs "$0" && exec "$@"', folder]
    const own = process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount']
    const { output } = await run(code, path.join(folder, 'store'), {}, ['unshare', ...own, ...mount])
    const { message, ...rest } = JSON.parse(output) as { message: string }
    assert.deepEqual(rest, { name: 'DiskFullError', left: 1, isReadable: true, bytes: 6_000_000 })
    assert.match(message, /is full.*free space/)
  })
})

describe('the collector', () => {
  it('the collector deletes old content without references', () => {
    const item = { digest: 'sha256:a', bytes: 1, modifiedMs: 1_000 }
    assert.equal(isCollectable(item, new Set(), 1_001), true)
    assert.equal(isCollectable(item, new Set(), 1_000), false)
    assert.equal(isCollectable(item, new Set(['sha256:a']), 1_001), false)
  })

  it('the collector keeps content that is put or touched at the same time', async () => {
    const store = await fresh()
    const contents = Array.from({ length: 8 }, (_, index) => Buffer.from(`content ${index}`))
    const old = new Date(1_000)
    let deleted = 0
    let kept = 0
    for (let round = 0; round < 60; round += 1) {
      const work = contents.map(async (content, index) => {
        const digest = digestOf(content)
        for (let turn = 0; turn < (round + index) % 7; turn += 1) await new Promise(setImmediate)
        if ((round + index) % 3 > 0) assert.equal((await store.put(content)).digest, digest)
        else if (!(await store.touch(digest))) await store.put(content)
        assert.deepEqual(await store.read(digest, 100), content)
      })
      const collecting = contents.map(async (content, index) => {
        for (let turn = 0; turn < (round * index) % 5; turn += 1) await new Promise(setImmediate)
        if (await store.deleteUnused(digestOf(content), Date.now() - 60_000)) deleted += 1
        else kept += 1
      })
      await Promise.all([...work, ...collecting])
      for (const content of contents) {
        assert.deepEqual(await store.read(digestOf(content), 100), content)
        await fs.utimes(fileOf(store, digestOf(content)), old, old)
      }
    }
    assert.ok(deleted > 20 && kept > 20, `${deleted} deleted, ${kept} kept`)
    assert.equal((await filesIn(store.folder)).length, contents.length)
  })

  it('the collector deletes nothing while references are unknown', async () => {
    const store = await fresh()
    const { digest } = await store.put(Buffer.from('not a manifest'))
    const later = () => Date.now() + 3_600_000
    await assert.rejects(
      collect(store, () => [digestOf('missing')], { graceMs: 0, now: later }),
      NoContentError,
    )
    await assert.rejects(
      collect(store, () => [digest], { graceMs: 0, now: later }),
      /Invalid image manifest/,
    )
    assert.equal(await store.has(digest), true)
    assert.equal(await collect(store, () => [], { graceMs: 0, now: later }), 1)
  })
})
