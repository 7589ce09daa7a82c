// Packs a capture of a VM into an image: the image that the VM's disk is based on, a layer for each overlay, and the memory.
// Packed layers are remembered by their id, so that a capture costs what was written since the last one.
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
  type Manifest,
  maxManifestBytes,
} from '../../images/format/format.ts'
import { chunksOf, encodeManifest } from '../../images/format/manifest.ts'
import { packAttachment } from '../../images/pack/attachments.ts'
import { boundLayers } from '../../images/pack/bounded.ts'
import { packDisk } from '../../images/pack/chunks.ts'
import { childManifest, type Delta, packDelta, packRawDelta } from '../../images/pack/deltas.ts'
import { foldLayers, planFold } from '../../images/pack/fold.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { readJsonFile, writeFileAtomically } from '../../platform/files.ts'
import type { WorkOptions } from '../../platform/parallel.ts'
import type { NodeContent } from '../images/content-source.ts'

interface PackJob {
  readonly uid: string
  readonly architecture: Manifest['architecture']
  readonly capture: Capture
  /** The image that the capture is based on. Undefined if this node has only parts of it, which suffices for overlays. */
  readonly base: BaseImage | undefined
  /** The digest of its manifest, if the server has it or this node has all of it. */
  readonly content: string | undefined
}

interface PackOptions {
  readonly signal: AbortSignal
  /** `share` is between 0 and 1. */
  progress(share: number, bytes: number): void
  /** Whether no other capture is being packed or delivered, which may use the same chunks. */
  isAlone(): Promise<boolean>
  /** Wraps the store that chunks are put into. */
  wrapStore?(store: ContentStore): ContentStore
}

/** The reason with which a signal aborts when the image is no longer desired. Packed content is then deleted. */
export class Canceled extends Error {
  override readonly name = 'Canceled'
}

export class Packer {
  readonly #folder: string
  readonly #content: () => Promise<NodeContent>

  /** `folder` is for what is remembered of packed layers. */
  constructor(folder: string, content: () => Promise<NodeContent>) {
    this.#folder = folder
    this.#content = content
  }

  /** Returns the digest of the manifest. All content is in the node's store then, except for what the server has. */
  async pack(job: PackJob, options: PackOptions): Promise<string> {
    const { capture, base, content } = job
    if (capture.base !== (base?.digest ?? content))
      throw new Error(`image ${base?.name ?? content} is not the one that the VM was created from`)
    const { store, source } = await this.#content()
    const put = new Set<string>()
    const recording = recorded(options.wrapStore?.(store) ?? store, source, put)
    try {
      const work = await workOn(job, options)
      const manifest = await this.#packDisk(job, recording, work)
      const from = planFold(manifest.layers, await storedChunks(manifest, base, store))
      const folded =
        from === undefined ? manifest.layers : await foldLayers(manifest.layers, from, recording, work.part(0))
      const layers = await boundLayers(folded, recording, work.part(0))
      const memory = capture.memory && {
        state: await packAttachment(capture.memory.file, recording, work.part(await bytesIn(capture.memory.file))),
        description: { ...capture.memory.description },
      }
      const machine = capture.machine && (await packMachine(capture.machine, recording, work))
      const parts = { layers, ...(memory && { memory }), ...(machine && { machine }) }
      const { bytes } = encodeManifest({ ...manifest, ...parts })
      return (await recording.put(bytes, { signal: options.signal })).digest
    } catch (error) {
      // No manifest names this content, so it is deleted. When the agent stops, it stays: the next agent packs with it.
      const { aborted: isStopping, reason } = options.signal
      if (!isStopping || reason instanceof Canceled) await free(store, put, options.isAlone)
      throw error
    }
  }

  async contentsOf(digest: string): Promise<readonly Stored[]> {
    const { store } = await this.#content()
    const manifest = await readManifest(store, digest)
    const sizes = new Map([...chunksOf(manifest)].map((chunk) => [chunk.digest, chunk.storedBytes]))
    sizes.set(digest, (await store.size(digest)) ?? 0)
    return [...sizes].map(([each, bytes]) => ({ digest: each, bytes }))
  }

  /** The node's store with the server behind it. `fetchRest` is called before missing content is read. */
  async storeWith(fetchRest: () => Promise<void>): Promise<ContentStore> {
    const { store, source } = await this.#content()
    const read: ContentStore['read'] = async (digest, maxBytes, signal) => {
      if (!(await store.has(digest))) await fetchRest()
      return source.read(digest, maxBytes, signal)
    }
    return {
      ...store,
      read,
      async *open(digest, part) {
        if (!(await store.has(digest))) await read(digest, maxManifestBytes)
        yield* store.open(digest, part)
      },
    }
  }

  /** Deletes the memory of a delivered image. The chunks of its disk stay for the next capture. */
  async delivered(digest: string, isAlone: PackOptions['isAlone']): Promise<void> {
    const { store } = await this.#content()
    const { memory, layers } = await readManifest(store, digest)
    const inLayers = new Set(layers.flatMap(({ chunks }) => chunks.map((chunk) => chunk.digest)))
    const digests = (memory?.state.chunks ?? []).map((chunk) => chunk.digest)
    const inMemory = digests.filter((each) => !inLayers.has(each))
    await free(store, inMemory, isAlone)
  }

  /** Deletes an image that is not delivered, except for what its parent has too. */
  async discard(digest: string, isAlone: PackOptions['isAlone']): Promise<void> {
    const { store } = await this.#content()
    const manifest = await readManifest(store, digest).catch(() => undefined)
    const parent =
      manifest?.parent === undefined ? undefined : await readManifest(store, manifest.parent).catch(() => undefined)
    const shared = new Set([...(parent ? chunksOf(parent) : [])].map((chunk) => chunk.digest))
    const chunks = manifest && parent ? [...chunksOf(manifest)].map((chunk) => chunk.digest) : []
    await free(store, [...chunks.filter((each) => !shared.has(each)), digest], isAlone)
  }

  async forget(uid: string): Promise<void> {
    await fs.rm(this.#folderOf(uid), { recursive: true, force: true })
  }

  /** The manifest of the base image with a layer for each overlay, without memory. */
  async #packDisk(job: PackJob, store: ContentStore, work: Work): Promise<Manifest> {
    const { capture, base, uid, content } = job
    const parent = await this.#baseManifest(job, store, work)
    const parentDigest = content ?? encodeManifest(parent).digest
    let manifest = parent
    for (const [index, layer] of capture.layers.entries()) {
      const key = `layer ${capture.base} ${layer.id}`
      const part = work.part(await bytesIn(layer.file))
      let delta = await this.#remembered<Delta>(key, (known) => (known.layer ? [known.layer] : []), uid)
      if (!delta) {
        const below = capture.layers[index - 1]?.file ?? base?.disk
        const parentFile = index === 0 ? below : undefined
        delta = await (layer.format === 'raw'
          ? packRawDelta(layer.file, requireFile(below), manifest, store, part)
          : packDelta(layer.file, manifest, store, { ...part, parentFile }))
        failpoint('captures.pack.layer')
        await this.#remember(key, delta, uid)
      }
      manifest = childManifest(manifest, parentDigest, delta)
    }
    const virtualSizeBytes = Math.max(manifest.virtualSizeBytes, capture.virtualSizeBytes)
    const { memory: _, ...disk } = manifest
    return { ...disk, virtualSizeBytes, parent: parentDigest }
  }

  /** An image that nodes build from a recipe is packed with its first capture. */
  async #baseManifest({ base, content, architecture }: PackJob, store: ContentStore, work: Work): Promise<Manifest> {
    if (content !== undefined) return readManifest((await this.#content()).source, content, work.signal)
    if (!base) throw new Error(missingImage)
    const key = `base ${base.digest}`
    const known = await this.#remembered<Manifest>(key, (manifest) => [...manifest.layers, ...filesOf(manifest)])
    if (known) return known
    if (base.format !== 'raw') throw new Error(`image ${base.name} is stored as ${base.format}, not as a raw disk`)
    const { boot } = base
    const attach = (file: string): Promise<Attachment> => packAttachment(file, store, work.part(0))
    const disk = await packDisk(base.disk, store, work.part(await bytesIn(base.disk)))
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
      layers: await boundLayers([disk], store, work.part(0)),
    }
    await this.#remember(key, manifest)
    return manifest
  }

  #folderOf(uid: string): string {
    return path.join(this.#folder, hash('sha256', uid).slice(0, 32))
  }

  #fileOf(key: string, uid?: string): string {
    return path.join(uid === undefined ? this.#folder : this.#folderOf(uid), `${hash('sha256', key)}.json`)
  }

  /** Undefined also if the store no longer has all chunks. */
  async #remembered<T>(key: string, layersOf: (value: T) => readonly Layer[], uid?: string): Promise<T | undefined> {
    const value = await readJsonFile<T>(this.#fileOf(key, uid), (read) =>
      layersOf(read).every(({ chunks }) => Array.isArray(chunks)),
    )
    if (value === undefined) return undefined
    const { store } = await this.#content()
    for (const { digest, storedBytes } of layersOf(value).flatMap(({ chunks }) => chunks))
      if ((await store.size(digest)) !== storedBytes) return undefined
    return value
  }

  async #remember(key: string, value: unknown, uid?: string): Promise<void> {
    const file = this.#fileOf(key, uid)
    await fs.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    await writeFileAtomically(file, JSON.stringify(value))
  }
}

/** For simulated VMs, whose disks are empty. */
export class PretendPacker extends Packer {
  readonly #store: () => Promise<ContentStore>

  constructor(content: () => Promise<NodeContent>) {
    super('', content)
    this.#store = async () => (await content()).store
  }

  override async pack({ architecture, capture: { virtualSizeBytes } }: PackJob, { signal }: PackOptions) {
    const empty = { formatVersion, architecture, virtualSizeBytes, boot: { kind: 'firmware' }, layers: [] } as const
    return (await (await this.#store()).put(encodeManifest(empty).bytes, { signal })).digest
  }

  /** Captures of equal size are the same image, so none is deleted. */
  override async discard(): Promise<void> {}

  override async forget(): Promise<void> {}
}

const missingImage = 'the image of the VM is not on this node'

async function packMachine({ config, nvram }: MachineFiles, store: ContentStore, work: Work) {
  const attach = (file: string): Promise<Attachment> => packAttachment(file, store, work.part(0))
  return { config: await attach(config), ...(nvram !== undefined && { nvram: await attach(nvram) }) }
}

/** Deletes content, except what was put or touched since the call. What remains is evicted when space is needed. */
async function free(store: ContentStore, digests: Iterable<string>, isAlone: PackOptions['isAlone']): Promise<void> {
  const beforeMs = Date.now()
  if (!(await isAlone())) return
  for (const digest of digests) await store.deleteUnused(digest, beforeMs)
}

function requireFile(file: string | undefined): string {
  if (file === undefined) throw new Error(missingImage)
  return file
}

/** Returns which chunks are stored, if not the whole image is: others are not fetched only to be packed again. */
async function storedChunks({ layers }: Manifest, base: BaseImage | undefined, store: ContentStore) {
  if (base) return undefined
  const stored = new Set<string>()
  for (const { digest } of layers.flatMap(({ chunks }) => chunks)) if (await store.has(digest)) stored.add(digest)
  return ({ digest }: Chunk) => stored.has(digest)
}

const filesOf = ({ boot }: Manifest): readonly Layer[] =>
  boot.kind === 'firmware' ? [] : [boot.kernel, ...(boot.initrd ? [boot.initrd] : [])]

/** Records the digests that are put, and reads missing content from the server. */
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
  part(bytes: number): WorkOptions
}

async function workOn({ capture, base, content }: PackJob, { signal, progress }: PackOptions): Promise<Work> {
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

const bytesIn = async (file: string): Promise<number> => (await fs.stat(file)).blocks * 512
