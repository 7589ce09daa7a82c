// From a VM as it was in one moment to an image: the image that its disk stands on, a layer for each of its own, and its
// memory. What was packed before is remembered by its id, so that a capture costs what was written since the last one.
import { hash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { BaseImage, Capture, MachineFiles } from '../../drivers/driver.ts'
import type { ContentSource, ContentStore, Stored } from '../../images/content/content.ts'
import {
  type Attachment,
  type Chunk,
  formatVersion,
  type Layer,
  largestManifestBytes,
  type Manifest,
} from '../../images/format/format.ts'
import { chunksOf, encodeManifest } from '../../images/format/manifest.ts'
import { packAttachment } from '../../images/pack/attachments.ts'
import { boundLayers } from '../../images/pack/bounded.ts'
import { packDisk } from '../../images/pack/chunks.ts'
import { childManifest, type Delta, packDelta, packRawDelta } from '../../images/pack/deltas.ts'
import { foldLayers, planFold } from '../../images/pack/fold.ts'
import { hasAllContent, readManifest } from '../../images/pack/stored-manifests.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { WorkOptions } from '../../platform/parallel.ts'
import type { NodeContent } from '../images/content-source.ts'

interface PackJob {
  readonly uid: string
  readonly architecture: Manifest['architecture']
  readonly capture: Capture
  /** The image that the capture stands on; undefined where not all of it is here, which overlays do not need. */
  readonly base: BaseImage | undefined
  /** The digest of its manifest, where the server has it, or this node all of it. */
  readonly content: string | undefined
}

interface PackProgress {
  readonly signal: AbortSignal
  /** How much of the whole, from 0 to 1, and how many bytes that is. */
  progress(share: number, bytes: number): void
  /** Nobody else packs, or has packed what is still to be delivered: it may be the same chunks. */
  isAlone(): Promise<boolean>
  /** Chunks are put into this, which passes them on. */
  through?(store: ContentStore): ContentStore
}

/** The reason of a signal when the image is no longer desired: what was packed for it goes. */
export class GivenUp extends Error {
  override readonly name = 'GivenUp'
}

export interface Packer {
  /** Returns the digest of the manifest. All of it is in the node's store, but what the server has anyway. */
  pack(job: PackJob, options: PackProgress): Promise<string>
  /** Whether manifest and chunks of an image are all on this node. */
  isWhole(digest: string): Promise<boolean>
  /** Everything that an image is made of. */
  contentsOf(digest: string): Promise<readonly Stored[]>
  read(digest: string, bytes: number, signal: AbortSignal): Promise<Buffer>
  /** Whether this node has it in its store. */
  has(digest: string): Promise<boolean>
  /** The node's store, with what the server has beside it. `fetchRest` is called before something is read that is not here. */
  whole(fetchRest: () => Promise<void>): Promise<ContentStore>
  /** An image is where it should be: what only the next VM of it needs is fetched again then. */
  delivered(digest: string, isAlone: PackProgress['isAlone']): Promise<void>
  /** An image comes to nothing: what was packed for it alone goes. */
  dropped(digest: string, isAlone: PackProgress['isAlone']): Promise<void>
  /** A VM is gone: what is remembered of its layers goes. */
  forget(uid: string): Promise<void>
}

/** `folder` is where it remembers what it packed. */
export function createPacker(folder: string, content: () => Promise<NodeContent>): Packer {
  const folderOf = (uid: string): string => path.join(folder, hash('sha256', uid).slice(0, 32))
  const fileOf = (key: string, uid?: string): string =>
    path.join(uid === undefined ? folder : folderOf(uid), `${hash('sha256', key)}.json`)

  /** Undefined also where some of its chunks are not there any more. */
  async function remembered<T>(
    key: string,
    chunksIn: (value: T) => readonly Layer[],
    uid?: string,
  ): Promise<T | undefined> {
    const text = await readFileIfPresent(fileOf(key, uid))
    if (text === undefined) return undefined
    const { store } = await content()
    try {
      const value = JSON.parse(text) as T
      for (const { chunks } of chunksIn(value))
        for (const { digest, storedBytes } of chunks) if ((await store.size(digest)) !== storedBytes) return undefined
      return value
    } catch {
      return undefined
    }
  }

  async function remember(key: string, value: unknown, uid?: string): Promise<void> {
    const file = fileOf(key, uid)
    await fs.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    await writeFileAtomically(file, JSON.stringify(value))
  }

  /** An image that nodes make themselves is packed by the first that saves a VM of it. */
  async function baseManifest({ base, content: digest, architecture }: PackJob, store: ContentStore, work: Work) {
    if (digest !== undefined) return readManifest((await content()).source, digest, work.signal)
    if (!base) throw new Error('the image of the VM is not on this node')
    const key = `base ${base.digest}`
    const known = await remembered<Manifest>(key, (manifest) => [...manifest.layers, ...filesOf(manifest)])
    if (known) return known
    if (base.format !== 'raw') throw new Error(`image ${base.name} is stored as ${base.format}, not as a raw disk`)
    const { boot } = base
    const attach = (file: string): Promise<Attachment> => packAttachment(file, store, work.part(0))
    const manifest: Manifest = {
      formatVersion,
      architecture,
      ...(base.os && { os: base.os }),
      virtualSizeBytes: base.virtualSizeBytes,
      boot:
        boot.kind === 'firmware'
          ? boot
          : {
              kind: 'kernel',
              kernel: await attach(boot.kernel),
              ...(boot.initrd !== undefined && { initrd: await attach(boot.initrd) }),
              commandLine: boot.commandLine,
            },
      layers: await boundLayers(
        [await packDisk(base.disk, store, work.part(await bytesIn(base.disk)))],
        store,
        work.part(0),
      ),
    }
    await remember(key, manifest)
    return manifest
  }

  return {
    async pack(job, options) {
      const { capture, base, uid } = job
      if (capture.base !== (base?.digest ?? job.content))
        throw new Error(`image ${base?.name ?? job.content} is not the one that the VM was created from`)
      const { store, source } = await content()
      const put = new Set<string>()
      const recording = recorded(options.through?.(store) ?? store, source, put)
      try {
        const work = await workOn(job, options)
        const parent = await baseManifest(job, recording, work)
        const parentDigest = job.content ?? encodeManifest(parent).digest
        let manifest = parent
        for (const [index, layer] of capture.layers.entries()) {
          const key = `layer ${capture.base} ${layer.id}`
          const part = work.part(await bytesIn(layer.file))
          let delta = await remembered<Delta>(key, (known) => (known.layer ? [known.layer] : []), uid)
          if (!delta) {
            const below = capture.layers[index - 1]?.file ?? base?.disk
            const parentFile = index === 0 ? below : undefined
            delta = await (layer.format === 'raw'
              ? packRawDelta(layer.file, requireFile(below), manifest, recording, part)
              : packDelta(layer.file, manifest, recording, { ...part, parentFile }))
            failpoint('captures.pack.layer')
            await remember(key, delta, uid)
          }
          manifest = childManifest(manifest, parentDigest, delta)
        }
        const virtualSizeBytes = Math.max(manifest.virtualSizeBytes, capture.virtualSizeBytes)
        const { memory: _, ...disk } = { ...manifest, virtualSizeBytes, parent: parentDigest }
        const from = planFold(disk.layers, await atHand(disk, base, store))
        const folded = from === undefined ? disk.layers : await foldLayers(disk.layers, from, recording, work.part(0))
        const layers = await boundLayers(folded, recording, work.part(0))
        const memory = capture.memory && {
          state: await packAttachment(capture.memory.file, recording, work.part(await bytesIn(capture.memory.file))),
          description: { ...capture.memory.description },
        }
        const machine = capture.machine && (await packMachine(capture.machine, recording, work))
        const parts = { layers, ...(memory && { memory }), ...(machine && { machine }) }
        const { bytes } = encodeManifest({ ...disk, ...parts })
        return (await recording.put(bytes, { signal: options.signal })).digest
      } catch (error) {
        // Whoever needs one of them besides makes or fetches it again; but what nobody knows of, nobody would remove.
        const { aborted: isCut, reason } = options.signal
        if (!isCut || reason instanceof GivenUp) await free(store, put, options.isAlone)
        throw error
      }
    },

    isWhole: async (digest) => hasAllContent((await content()).store, digest),

    async contentsOf(digest) {
      const { store } = await content()
      const manifest = await readManifest(store, digest)
      const chunks = [...chunksOf(manifest)].map((chunk) => ({ digest: chunk.digest, bytes: chunk.storedBytes }))
      const all = new Map(
        [...chunks, { digest, bytes: (await store.size(digest)) ?? 0 }].map((each) => [each.digest, each]),
      )
      return [...all.values()]
    },

    async read(digest, bytes, signal) {
      // What the server lacks of the parent may have been evicted here, and be on a server that is to come back.
      return (await content()).source.read(digest, bytes, signal)
    },

    has: async (digest) => (await content()).store.has(digest),

    async whole(fetchRest) {
      const { store, source } = await content()
      const read: ContentStore['read'] = async (digest, maxBytes, signal) => {
        if (!(await store.has(digest))) await fetchRest()
        return source.read(digest, maxBytes, signal)
      }
      return {
        ...store,
        read,
        async *open(digest, part) {
          if (!(await store.has(digest))) await read(digest, largestManifestBytes)
          yield* store.open(digest, part)
        },
      }
    },

    async delivered(digest, isAlone) {
      const { store } = await content()
      const { memory, layers } = await readManifest(store, digest)
      const others = new Set(layers.flatMap(({ chunks }) => chunks.map((chunk) => chunk.digest)))
      const digests = (memory?.state.chunks ?? []).map((chunk) => chunk.digest)
      await free(
        store,
        digests.filter((each) => !others.has(each)),
        isAlone,
      )
    },

    async dropped(digest, isAlone) {
      const { store } = await content()
      const manifest = await readManifest(store, digest).catch(() => undefined)
      const parent =
        manifest?.parent === undefined ? undefined : await readManifest(store, manifest.parent).catch(() => undefined)
      const kept = new Set([...(parent ? chunksOf(parent) : [])].map((chunk) => chunk.digest))
      const chunks = manifest && parent ? [...chunksOf(manifest)].map((chunk) => chunk.digest) : []
      await free(store, [...chunks.filter((each) => !kept.has(each)), digest], isAlone)
    },

    forget: (uid) => fs.rm(folderOf(uid), { recursive: true, force: true }),
  }
}

/** For hypervisors that only pretend: disks of that size without anything on them. */
export function createPretendPacker(content: () => Promise<NodeContent>): Packer {
  return {
    ...createPacker('', content),
    async pack({ architecture, capture: { virtualSizeBytes } }, { signal }) {
      const empty = { formatVersion, architecture, virtualSizeBytes, boot: { kind: 'firmware' }, layers: [] } as const
      return (await (await content()).store.put(encodeManifest(empty).bytes, { signal })).digest
    },
    // Captures of one size are the same image.
    dropped: async () => undefined,
    // Nothing of it was remembered.
    forget: async () => undefined,
  }
}

async function packMachine({ config, nvram }: MachineFiles, store: ContentStore, work: Work) {
  const attach = (file: string): Promise<Attachment> => packAttachment(file, store, work.part(0))
  return { config: await attach(config), ...(nvram !== undefined && { nvram: await attach(nvram) }) }
}

/** What somebody put or found since is theirs, too. Where not all is freed, it goes when space is needed. */
async function free(store: ContentStore, digests: Iterable<string>, isAlone: PackProgress['isAlone']): Promise<void> {
  const beforeMs = Date.now()
  if (!(await isAlone())) return
  for (const digest of digests) await store.deleteUnused(digest, beforeMs)
}

function requireFile(file: string | undefined): string {
  if (file === undefined) throw new Error('the image of the VM is not on this node')
  return file
}

/** Of an image that has not arrived, nothing is fetched only to be packed anew. */
async function atHand({ layers }: Manifest, base: BaseImage | undefined, store: ContentStore) {
  if (base) return undefined
  const here = new Set<string>()
  for (const { digest } of layers.flatMap(({ chunks }) => chunks)) if (await store.has(digest)) here.add(digest)
  return ({ digest }: Chunk) => here.has(digest)
}

const filesOf = ({ boot }: Manifest): readonly Layer[] =>
  boot.kind === 'firmware' ? [] : [boot.kernel, ...(boot.initrd ? [boot.initrd] : [])]

/** Notes what is put, and reads what is not here from the server. */
const recorded = (store: ContentStore, source: ContentSource, put: Set<string>): ContentStore => ({
  ...store,
  read: (digest, maxBytes, signal) => source.read(digest, maxBytes, signal),
  async put(bytes, options) {
    const stored = await store.put(bytes, options)
    put.add(stored.digest)
    return stored
  },
})

interface Work {
  readonly signal: AbortSignal
  /** The next piece of the work, of so many bytes. */
  part(bytes: number): WorkOptions
}

/** How far it is over all pieces, which come one after the other. */
async function workOn({ capture, base, content }: PackJob, { signal, progress }: PackProgress): Promise<Work> {
  const files = [...capture.layers.map(({ file }) => file), ...(capture.memory ? [capture.memory.file] : [])]
  if (content === undefined && base) files.push(base.disk)
  const sizes = await Promise.all(files.map(bytesIn))
  const all = Math.max(
    1,
    sizes.reduce((sum, bytes) => sum + bytes, 0),
  )
  let before = 0
  return {
    signal,
    part(size) {
      const from = before
      before += size
      const onProgress: WorkOptions['onProgress'] = ({ bytes, of }) => {
        const done = Math.min(all, from + (of === 0 ? 0 : bytes / of) * size)
        progress(done / all, Math.round(done))
      }
      return { signal, onProgress }
    },
  }
}

/** What it takes of the disk. */
const bytesIn = async (file: string): Promise<number> => (await fs.stat(file)).blocks * 512
