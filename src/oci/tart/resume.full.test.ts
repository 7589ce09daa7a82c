// Pulls of tart's images that are cut off or killed: layers that had come, and were what they should be, come once.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { type BadRegistry, reply, startBadRegistry } from '../../../test/support/stand-ins/bad-registry.ts'
import { putTart } from '../../../test/support/stand-ins/tart.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { openContentFolder } from '../../images/content/store.ts'
import { restoreDisk } from '../../images/pack/restore.ts'
import { openRegistry, type Registry } from '../registry/registry.ts'
import { packTart } from './read.ts'

const mebi = 2 ** 20
const layerCount = 6
/** The fourth is nothing but zeros. */
const disk = Buffer.concat([randomBytes(6 * mebi), Buffer.alloc(2 * mebi), randomBytes(4 * mebi)])
const repository = 'team/mac'
let folder: string
let bad: BadRegistry
let registry: Registry

before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-tart-resume-'))
  bad = await startBadRegistry()
  registry = openRegistry(reach())
  await putTart(registry.repository(repository), 'v1', { disk, layerBytes: 2 * mebi })
})
afterEach(() => {
  bad.bend = () => false
})
after(async () => {
  registry.close()
  await bad.close()
  await fs.rm(folder, { recursive: true, force: true })
})

const reach = () => ({
  server: bad.server,
  allowInsecure: true,
  policy: { allowLoopback: true, allowPrivate: false },
  retry: { attempts: 2, firstDelayMs: 1, maxDelayMs: 1, maxRetryAfterMs: 1 },
})

/** Digests of the disk's layers, in order. */
async function layers(): Promise<string[]> {
  const { bytes } = await registry.repository(repository).resolve('v1')
  const all = (JSON.parse(bytes.toString()) as { layers: { mediaType: string; digest: string }[] }).layers
  return all.filter(({ mediaType }) => mediaType.endsWith('disk.v2')).map(({ digest }) => digest)
}

async function pull(store: ContentStore, told: (bytes: number, of: number) => void = () => undefined) {
  const source = registry.repository(repository)
  const raw = await source.resolve('v1')
  bad.seen.length = 0
  const onProgress = ({ bytes, of }: { bytes: number; of: number }) => told(bytes, of)
  return packTart(source, raw, store, { concurrency: 1, onProgress })
}

/** The layers that were requested since the last pull began. */
async function fetched(): Promise<number[]> {
  const known = await layers()
  const indexes = bad.seen.map(({ path: at }) => known.findIndex((digest) => at.endsWith(digest)))
  return [...new Set(indexes.filter((index) => index >= 0))].sort()
}

async function checkDisk(manifest: Awaited<ReturnType<typeof pull>>, store: ContentStore): Promise<void> {
  const file = path.join(store.folder, 'restored.raw')
  await restoreDisk(manifest, store, file)
  assert.ok((await fs.readFile(file)).equals(disk))
}

describe("a pull of tart's image", () => {
  it("an interrupted pull of tart's image fetches the rest, and reports progress", async () => {
    const store = await openContentFolder(path.join(folder, 'cut'))
    const digests = await layers()
    assert.equal(new Set(digests).size, layerCount)
    bad.bend = ({ path: at }, response) => at.endsWith(digests[4] ?? '') && reply(response, 500)
    await assert.rejects(pull(store), /failed \(500\)/)
    bad.bend = () => false
    const told: number[] = []
    const manifest = await pull(store, (bytes, of) => told.push(bytes / of))
    assert.deepEqual(await fetched(), [4, 5])
    assert.ok((told[0] ?? 0) > 0.5 && told.at(-1) === 1, `${told[0]} … ${told.at(-1)}`)
    await checkDisk(manifest, store)
    // The image is complete.
    assert.deepEqual(await pull(store), manifest)
    assert.deepEqual(await fetched(), [])
  })

  it("a killed pull of tart's image resumes in the next process", async () => {
    const place = path.join(folder, 'killed')
    const module = (name: string) => JSON.stringify(path.join(import.meta.dirname, name))
    const code = `import { openContentFolder } from ${module('../../images/content/store.ts')}
      import { openRegistry } from ${module('../registry/registry.ts')}
      import { packTart } from ${module('read.ts')}
      const source = openRegistry(${JSON.stringify(reach())}).repository(${JSON.stringify(repository)})
      await packTart(source, await source.resolve('v1'), await openContentFolder(${JSON.stringify(place)}), { concurrency: 1 })`
    for (const left of [5, 4]) {
      const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
        env: { ...process.env, SVC3_TEST: '1', SVC3_FAILPOINT: 'oci.tart.layer' },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const said: Buffer[] = []
      child.stderr.on('data', (data: Buffer) => said.push(data))
      const [, signal] = (await once(child, 'close')) as [number | null, string | null]
      assert.equal(signal, 'SIGKILL', `with ${left} left: ${Buffer.concat(said)}`)
    }
    const store = await openContentFolder(place)
    const manifest = await pull(store)
    assert.deepEqual(await fetched(), [2, 3, 4, 5])
    await checkDisk(manifest, store)
  })

  it("a pull of tart's image fetches a layer again of which a chunk is gone or the note is damaged", async () => {
    const store = await openContentFolder(path.join(folder, 'gone'))
    const manifest = await pull(store)
    const [chunk] = manifest.layers[0]?.chunks ?? []
    assert.ok(chunk && (await store.delete(chunk.digest)))
    await checkDisk(await pull(store), store)
    assert.deepEqual(await fetched(), [0])
    const notes = path.join(store.folder, 'unpacked')
    for (const name of await fs.readdir(notes)) await fs.writeFile(path.join(notes, name), '[{"digest":"x"}]')
    await checkDisk(await pull(store), store)
    assert.equal((await fetched()).length, layerCount)
  })

  it("a pull of tart's image does not reuse a layer that failed verification", async () => {
    const store = await openContentFolder(path.join(folder, 'wrong'))
    const digests = await layers()
    const whole = bad.blobs.get(digests[0] ?? '') ?? Buffer.alloc(0)
    const wrong = Buffer.from(whole)
    wrong.writeUInt8(wrong.readUInt8(100) ^ 1, 100)
    bad.blobs.set(digests[0] ?? '', wrong)
    await assert.rejects(pull(store), /does not match its digest/)
    bad.blobs.set(digests[0] ?? '', whole)
    await checkDisk(await pull(store), store)
    assert.ok((await fetched()).includes(0))
  })
})
