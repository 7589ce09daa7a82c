// Push and pull beside skopeo, on the same registry program, in turns on one machine. Each push goes to a fresh
// registry.

import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress } from 'node:zlib'
import { fillContent } from '../src/agent/images/content.ts'
import { fileSource } from '../src/images/content/blocks.ts'
import type { ContentStore } from '../src/images/content/content.ts'
import { openContentFolder } from '../src/images/content/store.ts'
import { blockBytes, type Manifest } from '../src/images/format/format.ts'
import { packDisk, packLayer } from '../src/images/pack/chunks.ts'
import { childManifest } from '../src/images/pack/deltas.ts'
import { putManifest, readManifest } from '../src/images/pack/stored-manifests.ts'
import { encodeArtifact } from '../src/oci/artifact/artifact.ts'
import { imageSource } from '../src/oci/artifact/image-target.ts'
import { ociConfigType, ociManifestType, rawManifest } from '../src/oci/artifact/oci-manifest.ts'
import type { Destination } from '../src/oci/artifact/target.ts'
import { copy } from '../src/oci/copy.ts'
import { forwardTo } from '../src/oci/forward.ts'
import { openRegistry } from '../src/oci/registry/registry.ts'
import { exec } from '../src/platform/exec.ts'
import { type RegistryProcess, startRegistry } from '../test/support/processes/registry.ts'
import { openLayout } from '../test/support/tools/oci-layout.ts'
import { openRemoteImage } from '../test/support/tools/remote-image.ts'
import { msOf, sized } from './measure.ts'
import { type BenchRow, compared, limited } from './row.ts'

const gibi = 2 ** 30
const mebi = 2 ** 20
const diskBytes = sized(2 * gibi, 16 * mebi)
const rounds = sized(3, 1)
const policy = { allowLoopback: true, allowPrivate: false }

/** Data that zstd halves. */
function fillData(data: Buffer): void {
  data.write(randomBytes(data.length / 2).toString('hex'), 'latin1')
}

/** Half of it is data, in runs of 8 MiB. */
async function makeDisk(file: string, bytes: number, runEvery = 16 * mebi, runBytes = 8 * mebi): Promise<void> {
  await using handle = await fs.open(file, 'w')
  await handle.truncate(bytes)
  const run = Buffer.alloc(runBytes)
  for (let at = 0; at < bytes; at += runEvery) {
    fillData(run)
    await handle.write(run, 0, run.length, at)
  }
  await handle.sync()
}

const secondsOf = async (work: () => Promise<unknown>): Promise<number> => (await msOf(work)) / 1_000

const connect = ({ server }: RegistryProcess) => openRegistry({ server, allowInsecure: true, policy })

async function withRegistry<T>(folder: string, work: (registry: RegistryProcess) => Promise<T>): Promise<T> {
  const registry = await startRegistry({ folder })
  try {
    return await work(registry)
  } finally {
    await registry.kill()
    await fs.rm(folder, { recursive: true, force: true })
  }
}

const skopeo = (...args: string[]) => exec('skopeo', args, { timeoutMs: 600_000 })
const skopeoPush = (layout: string, { host }: RegistryProcess, name: string) =>
  skopeo('copy', '--dest-tls-verify=false', `oci:${layout}:v1`, `docker://${host}/${name}:v1`)

/** Packed, and sent as far as that was quick. */
async function packed(
  file: string,
  folder: string,
  target: Destination,
): Promise<{ digest: string; store: ContentStore; there: ReadonlySet<string> }> {
  const store = await openContentFolder(folder)
  const { size } = await fs.stat(file)
  const forwarding = forwardTo(target, store)
  const manifest: Manifest = {
    formatVersion: 1,
    architecture: 'arm64',
    virtualSizeBytes: size,
    boot: { kind: 'firmware' },
    layers: [await packDisk(file, forwarding.store)],
  }
  await forwarding.idle()
  return { store, digest: await putManifest(store, manifest), there: forwarding.there }
}

/** The whole disk as one layer, compressed with one thread, as one would do it by hand. */
async function compressWhole(disk: string, layout: string): Promise<void> {
  const blobs = path.join(layout, 'blobs/sha256')
  await fs.mkdir(blobs, { recursive: true })
  const file = path.join(layout, 'layer')
  const hasher = createHash('sha256')
  await pipeline(
    createReadStream(disk, { highWaterMark: mebi }),
    createZstdCompress({ chunkSize: mebi, params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
    async function* (pieces: AsyncIterable<Buffer>) {
      for await (const piece of pieces) {
        hasher.update(piece)
        yield piece
      }
    },
    createWriteStream(file),
  )
  const hex = hasher.digest('hex')
  const { size } = await fs.stat(file)
  await fs.rename(file, path.join(blobs, hex))
  const config = Buffer.from('{"architecture":"arm64","os":"unknown"}')
  const blob = {
    mediaType: ociConfigType,
    digest: `sha256:${createHash('sha256').update(config).digest('hex')}`,
    size: config.length,
  }
  const layer = { mediaType: 'application/vnd.example.disk+zstd', digest: `sha256:${hex}`, size }
  const manifest = { schemaVersion: 2, mediaType: ociManifestType, config: blob, layers: [layer] }
  const target = openLayout(layout)
  await target.put(blob, { open: async function* () { yield config } }) // biome-ignore format: one piece
  await target.finish(rawManifest(ociManifestType, Buffer.from(JSON.stringify(manifest))), 'v1')
}

interface Seconds {
  readonly full: number[]
  readonly skopeoPush: number[]
  readonly compressPush: number[]
  readonly second: number[]
  readonly pull: number[]
  readonly skopeoPull: number[]
}

async function pushAndPull(folder: string): Promise<BenchRow[]> {
  const disk = path.join(folder, 'disk.raw')
  await makeDisk(disk, diskBytes)
  const seconds: Seconds = { full: [], skopeoPush: [], compressPush: [], second: [], pull: [], skopeoPull: [] }
  const sent = { wireBytes: 0, changedBytes: 0 }
  for (let round = 0; round < rounds; round += 1) {
    const layout = path.join(folder, 'layout')
    await withRegistry(path.join(folder, 'ours'), (registry) => ourRound(folder, disk, registry, seconds, sent))
    await withRegistry(path.join(folder, 'theirs'), async (registry) =>
      seconds.skopeoPush.push(await secondsOf(() => skopeoPush(layout, registry, 'team/theirs'))),
    )
    await withRegistry(path.join(folder, 'by-hand'), async (registry) => {
      const whole = path.join(folder, 'whole')
      const byHand = async (): Promise<void> => {
        await compressWhole(disk, whole)
        await skopeoPush(whole, registry, 'team/by-hand')
      }
      seconds.compressPush.push(await secondsOf(byHand))
      await fs.rm(whole, { recursive: true })
    })
    await fs.rm(layout, { recursive: true })
  }
  const rates = (of: keyof Seconds): number[] => seconds[of].map((value) => diskBytes / mebi / value)
  const push = 'Push of a 2 GiB disk, half data, packed and sent'
  const unit = 'MiB/s'
  const second = 'Second push after 1 % of the blocks changed, bytes sent'
  const pull = 'Pull to a disk that can boot'
  return [
    compared({ what: push, reference: '`skopeo copy` of the same layers, packed before', unit, atLeast: 1 }, rates('full'), rates('skopeoPush')),
    compared({ what: 'The same', reference: 'compressing with one thread, then `skopeo copy`', unit, atLeast: 1.5 }, rates('full'), rates('compressPush')),
    compared({ what: second, reference: 'the changed bytes', unit: 'MiB', atMost: 3 }, [sent.wireBytes / mebi], [sent.changedBytes / mebi]),
    compared({ what: 'The same, time', reference: 'the first push', unit: 's', atMost: 0.1 }, seconds.second, seconds.full),
    compared({ what: pull, reference: '`skopeo copy` to a folder', unit, atLeast: 0.75 }, rates('pull'), rates('skopeoPull')),
  ] // biome-ignore format: rows
}

/**
 * Push, pull and second push as agents do them; skopeo pulls the same. Leaves the pushed layers in the folder `layout`.
 */
async function ourRound(
  folder: string,
  disk: string,
  registry: RegistryProcess,
  seconds: Seconds,
  sent: { wireBytes: number; changedBytes: number },
): Promise<void> {
  const at = (name: string): string => path.join(folder, name)
  const target = connect(registry).repository('team/ours')
  const startMs = performance.now()
  const { store, digest, there } = await packed(disk, at('store'), target)
  await copy({ target: imageSource(store), reference: digest }, { target, reference: 'v1' }, { there })
  seconds.full.push((performance.now() - startMs) / 1_000)
  await copy({ target: imageSource(store), reference: digest }, { target: openLayout(at('layout')), reference: 'v1' })

  const pullMs = performance.now()
  const { imageDigest, content } = await openRemoteImage(target, 'v1')
  await fillContent(at('node'), imageDigest, {
    store: await openContentFolder(at('node/content')),
    read: content.read,
    open: () => Promise.reject(new Error('all content is in the registry')),
    signal: new AbortController().signal,
    progress: () => undefined,
  })
  seconds.pull.push((performance.now() - pullMs) / 1_000)
  const from = `docker://${registry.host}/team/ours:v1`
  seconds.skopeoPull.push(
    await secondsOf(() => skopeo('copy', '--src-tls-verify=false', from, `dir:${at('skopeo-pulled')}`)),
  )

  const changed = await changeBlocks(disk, at('changed'))
  sent.changedBytes = changed.length * blockBytes
  const secondPush = async (): Promise<void> => {
    await using handle = await fs.open(at('changed'), 'r')
    const pieces = changed.map((offset) => ({ offset, length: blockBytes, at: offset }))
    let sentBytes = 0
    const onSent = (bytes: number): void => {
      sentBytes = bytes
    }
    const forwarding = forwardTo(target, store, { onSent })
    const layer = await packLayer(pieces, fileSource(handle, diskBytes), forwarding.store, { isDelta: true })
    await forwarding.idle()
    const child = childManifest(await readManifest(store, digest), digest, { layer, virtualSizeBytes: diskBytes })
    const source = { target: imageSource(store), reference: await putManifest(store, child) }
    const { progress } = await copy(source, { target, reference: 'v2' }, { there: forwarding.there })
    const { bytesTotal, bytesSkipped } = progress
    sent.wireBytes = sentBytes + bytesTotal - bytesSkipped + encodeArtifact(child).manifest.bytes.length
  }
  seconds.second.push(await secondsOf(secondPush))
  for (const name of ['node', 'skopeo-pulled', 'changed', 'store']) await fs.rm(at(name), { recursive: true })
}

/** A copy of the disk in which 1 % of the blocks are others; says where. */
async function changeBlocks(disk: string, target: string): Promise<number[]> {
  await exec('cp', ['--sparse=always', disk, target], { timeoutMs: 120_000 })
  const blocks = diskBytes / blockBytes
  const places = new Set<number>()
  while (places.size < blocks / 100) places.add(Math.floor(Math.random() * blocks) * blockBytes)
  await using handle = await fs.open(target, 'r+')
  const block = Buffer.alloc(blockBytes)
  for (const place of places) {
    fillData(block)
    await handle.write(block, 0, block.length, place)
  }
  return [...places].sort((a, b) => a - b)
}

/** In a separate process, whose memory is measured; making the disk there would add to it. */
async function sparsePush(folder: string): Promise<BenchRow> {
  await makeDisk(path.join(folder, 'sparse.raw'), sized(64, 1) * gibi, 256 * mebi, 4 * mebi)
  const { stdout } = await exec(process.execPath, [import.meta.filename, folder], { timeoutMs: 600_000 })
  const what = 'Memory of a push of a 64 GiB sparse disk with 1 GiB of data'
  return limited(what, 'MB', Number(stdout.trim()) / 1_000, 300)
}

async function sparseChild(folder: string): Promise<void> {
  const disk = path.join(folder, 'sparse.raw')
  await withRegistry(path.join(folder, 'sparse-registry'), async (registry) => {
    const target = connect(registry).repository('team/sparse')
    const { store, digest, there } = await packed(disk, path.join(folder, 'sparse-store'), target)
    await copy({ target: imageSource(store), reference: digest }, { target, reference: 'v1' }, { there })
  })
  process.stdout.write(`${process.resourceUsage().maxRSS}\n`)
}

export async function bench(): Promise<BenchRow[]> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-bench-registry-'))
  try {
    return [...(await pushAndPull(folder)), await sparsePush(folder)]
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  await sparseChild(process.argv[2] ?? '')
  process.exit(0)
}
