// Push and pull beside skopeo, on the same registry program, in turns on one machine. Each push goes to a fresh registry.
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress } from 'node:zlib'
import { fillContent } from '../src/agent/images/fill-content.ts'
import type { ContentStore } from '../src/images/content.ts'
import { blockBytes, type Manifest } from '../src/images/format.ts'
import { fileSource, packDisk, packLayer } from '../src/images/pack/chunks.ts'
import { childManifest } from '../src/images/pack/deltas.ts'
import { openStore } from '../src/images/store.ts'
import { putManifest, readManifest } from '../src/images/stored-manifests.ts'
import { encodeArtifact } from '../src/oci/artifact.ts'
import { copy } from '../src/oci/copy.ts'
import { forwardTo } from '../src/oci/forward.ts'
import { imageSource, openRemoteImage } from '../src/oci/image-target.ts'
import { openLayout } from '../src/oci/layout.ts'
import { ociConfigType, ociManifestType, rawManifest } from '../src/oci/oci-manifest.ts'
import { openRegistry } from '../src/oci/registry/registry.ts'
import type { Destination } from '../src/oci/target.ts'
import { exec } from '../src/platform/exec.ts'
import { type RegistryProcess, startRegistry } from '../test/support/processes/registry.ts'
import { type BenchRow, median, printRows } from './row.ts'

const gibi = 2 ** 30
const mebi = 2 ** 20
const diskBytes = Number(process.env.BENCH_DISK_BYTES ?? 2 * gibi)
const rounds = Number(process.env.BENCH_ROUNDS ?? 3)
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

async function timed<T>(work: () => Promise<T>): Promise<{ seconds: number; result: T }> {
  const startMs = performance.now()
  const result = await work()
  return { seconds: (performance.now() - startMs) / 1_000, result }
}

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
  const store = await openStore(folder)
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

const median3 = (values: readonly number[]): number => median(values)

async function pushAndPull(folder: string): Promise<BenchRow[]> {
  const disk = path.join(folder, 'disk.raw')
  await makeDisk(disk, diskBytes)
  const seconds = { full: [], skopeoPush: [], compressPush: [], second: [], pull: [], skopeoPull: [] } as Record<
    string,
    number[]
  >
  const note = (name: string, value: number) => void seconds[name]?.push(value)
  let wireBytes = 0
  let changedBytes = 0
  for (let round = 0; round < rounds; round += 1) {
    const storeFolder = path.join(folder, `store-${round}`)
    const layout = path.join(folder, 'layout')
    await withRegistry(path.join(folder, 'ours'), async (registry) => {
      const target = connect(registry).repository('team/ours')
      const first = await timed(async () => {
        const { store, digest, there } = await packed(disk, storeFolder, target)
        await copy({ target: imageSource(store), reference: digest }, { target, reference: 'v1' }, { there })
        return { store, digest }
      })
      note('full', first.seconds)
      const { store, digest } = first.result
      await copy({ target: imageSource(store), reference: digest }, { target: openLayout(layout), reference: 'v1' })

      const pull = await timed(async () => {
        const { imageDigest, content, open } = await openRemoteImage(target, 'v1')
        // As an agent does it: into its store, and to the disk.
        return await fillContent(path.join(folder, 'node'), imageDigest, {
          store: await openStore(path.join(folder, 'node/content')),
          read: content.read,
          open: async (wanted, signal) => open(wanted, signal),
          signal: new AbortController().signal,
          progress: () => undefined,
        })
      })
      note('pull', pull.seconds)
      await pull.result.lasting
      await fs.rm(path.join(folder, 'node'), { recursive: true })
      const there = path.join(folder, 'skopeo-pulled')
      note(
        'skopeoPull',
        (
          await timed(() =>
            skopeo('copy', '--src-tls-verify=false', `docker://${registry.host}/team/ours:v1`, `dir:${there}`),
          )
        ).seconds,
      )
      await fs.rm(there, { recursive: true })

      const changed = await changeBlocks(disk, path.join(folder, 'changed'))
      const second = await timed(async () => {
        await using handle = await fs.open(path.join(folder, 'changed'), 'r')
        const pieces = changed.map((offset) => ({ offset, length: blockBytes, at: offset }))
        // As an agent does it: what is packed is on its way while the rest is packed.
        let sentBytes = 0
        const onSent = (bytes: number): void => {
          sentBytes = bytes
        }
        const forwarding = forwardTo(target, store, { onSent })
        const layer = await packLayer(pieces, fileSource(handle, diskBytes), forwarding.store, { isDelta: true })
        await forwarding.idle()
        const child = childManifest(await readManifest(store, digest), digest, { layer, virtualSizeBytes: diskBytes })
        const childDigest = await putManifest(store, child)
        const { there } = forwarding
        const { progress } = await copy(
          { target: imageSource(store), reference: childDigest },
          { target, reference: 'v2' },
          { there },
        )
        const { bytesTotal, bytesSkipped } = progress
        return sentBytes + bytesTotal - bytesSkipped + encodeArtifact(child).manifest.bytes.length
      })
      note('second', second.seconds)
      wireBytes = second.result
      changedBytes = changed.length * blockBytes
      await fs.rm(path.join(folder, 'changed'))
    })
    await withRegistry(path.join(folder, 'theirs'), async (registry) =>
      note('skopeoPush', (await timed(() => skopeoPush(layout, registry, 'team/theirs'))).seconds),
    )
    await withRegistry(path.join(folder, 'by-hand'), async (registry) => {
      const whole = path.join(folder, 'whole')
      note('compressPush', (await timed(async () => {
        await compressWhole(disk, whole)
        await skopeoPush(whole, registry, 'team/by-hand')
      })).seconds) // biome-ignore format: one figure
      await fs.rm(whole, { recursive: true })
    })
    await fs.rm(storeFolder, { recursive: true })
    await fs.rm(layout, { recursive: true })
  }
  const rate = (name: string): number => diskBytes / mebi / median3(seconds[name] ?? [])
  const row = (name: string, ours: number, reference: number, unit: string, target: number, better: BenchRow['better']): BenchRow => ({
    name, ours, reference, unit, ratio: ours / reference, target, better,
  }) // biome-ignore format: a row
  return [
    row('push of a 2 GiB disk, half data, packed and sent (reference: skopeo copy of the same layers, already compressed)', rate('full'), rate('skopeoPush'), 'MiB/s', 1, 'higher'),
    row('the same (reference: compressing with one thread, then skopeo copy)', rate('full'), rate('compressPush'), 'MiB/s', 1.5, 'higher'),
    row('second push after 1 % of the blocks changed, bytes sent (reference: the changed bytes)', wireBytes / mebi, changedBytes / mebi, 'MiB', 3, 'lower'),
    row('the same, time (reference: the first push)', median3(seconds.second ?? []), median3(seconds.full ?? []), 's', 0.1, 'lower'),
    row('pull to a disk that can boot (reference: skopeo copy to a folder)', rate('pull'), rate('skopeoPull'), 'MiB/s', 1, 'higher'),
  ] // biome-ignore format: rows
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

/** In a process of its own, whose memory it is; to make the disk would take some, too. */
async function sparsePush(folder: string): Promise<BenchRow> {
  await makeDisk(path.join(folder, 'sparse.raw'), 64 * gibi, 256 * mebi, 4 * mebi)
  const { stdout } = await exec(process.execPath, [import.meta.filename, 'sparse', folder], { timeoutMs: 600_000 })
  const usedMb = Number(stdout.trim()) / 1_000
  return {
    name: 'memory of a push of a 64 GiB sparse disk with 1 GiB of data (reference: what is allowed)',
    ours: usedMb,
    reference: 300,
    unit: 'MB',
    ratio: usedMb / 300,
    target: 1,
    better: 'lower',
  }
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

export async function registryBench(): Promise<BenchRow[]> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-bench-registry-'))
  try {
    return [...(await pushAndPull(folder)), await sparsePush(folder)]
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const [, , mode, folder = ''] = process.argv
  if (mode === 'sparse') {
    await sparseChild(folder)
    process.exit(0)
  }
  printRows(await registryBench())
  process.exit(0)
}
