// Stores files as content of the image store, and reads them again, for the operations on images and ISOs.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Architecture } from '../../api/architecture.ts'
import { readBootPath } from '../../images/boot-path.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { roomOn, temporaryName } from '../../images/content/temporary-files.ts'
import { checkDisc } from '../../images/disc.ts'
import { resolveLayers } from '../../images/format/extents.ts'
import { formatVersion, type Layer, type Manifest, sectorBytes } from '../../images/format/format.ts'
import { chunksOf } from '../../images/format/manifest.ts'
import { normaliseDisk } from '../../images/normalise.ts'
import { boundLayers } from '../../images/pack/bounded.ts'
import { packDisk } from '../../images/pack/chunks.ts'
import { asQcow2, nextData, type Readable, readRange } from '../../images/pack/read-range.ts'
import { putManifest, readManifest } from '../../images/pack/stored-manifests.ts'
import { BadDiskError } from '../../images/qcow2/header.ts'
import { forEachParallel, type Progress } from '../../platform/parallel.ts'
import { bootWarning } from '../../rules/boot-warning.ts'
import type { ImageRecord } from '../../store/records/fleet-records.ts'

export type Firmware = 'bios' | 'uefi'
export type GuestSystem = NonNullable<Manifest['os']>

export interface ImportOptions {
  readonly architecture: Architecture
  /** Default: the usual firmware of the architecture. */
  readonly firmware?: Firmware | undefined
  readonly os?: GuestSystem | undefined
  readonly signal: AbortSignal
  progress(progress: { readonly percent: number; readonly bytes: number }): void
  /** Called with the reason when the work is waiting, and with undefined when it continues. */
  waits(reason: string | undefined): void
}

const parallelTouches = 16

/** The default firmware of a guest system, if it is not that of the architecture. */
const firmwareOf: Readonly<Partial<Record<GuestSystem, Firmware>>> = { macos: 'uefi' }

export type Imported = Required<Pick<ImageRecord, 'content' | 'sizeBytes' | 'spaceUsedBytes'>> &
  Pick<ImageRecord, 'os' | 'warning'>

export interface ImageContents {
  /** Some content may be on other servers. */
  readonly isShared: boolean
  empty(architecture: Architecture, sizeBytes: number, boot: Pick<ImportOptions, 'firmware' | 'os'>): Promise<Imported>
  /** Stores a disk of any known format. Throws BadDiskError for other files. Consumes the file. */
  importDisk(file: string, options: ImportOptions): Promise<Imported>
  /** Stores a disc without changes. Throws BadDiskError for other files. */
  importDisc(file: string, options: ImportOptions): Promise<Imported>
  read(digest: string, range: { start: number; end: number }, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Throws if some content of the disk is unavailable. For downloads, which can fail only before the first byte. */
  requireDisk(digest: string): Promise<void>
  boot(digest: string, signal: AbortSignal): Promise<Manifest['boot']>
  /** Returns the next offset from `offset` on with data other than zeros. */
  nextData(digest: string, offset: number): Promise<number>
  /** Reads the disk as a qcow2 file, which always has the same bytes. */
  openQcow2(digest: string): Promise<Readable>
  /** Protects all content of the disk from the collector. Returns false if some is missing, throws if it may be. */
  hold(digest: string): Promise<boolean>
}

export function openImageContents(store: ContentStore): ImageContents {
  async function put(
    architecture: Architecture,
    sizeBytes: number,
    layers: readonly Layer[],
    { os, firmware = firmwareOf[os ?? 'other'], signal }: Partial<Pick<ImportOptions, 'firmware' | 'os' | 'signal'>>,
  ): Promise<Imported> {
    const manifest: Manifest = {
      formatVersion,
      architecture,
      ...(os && { os }),
      // A disk has whole sectors. The exact size of the file is in the record.
      virtualSizeBytes: Math.ceil(sizeBytes / sectorBytes) * sectorBytes,
      boot: { kind: 'firmware', ...(firmware && { firmware }) },
      layers: await boundLayers(layers, store, { signal }),
    }
    const content = await putManifest(store, manifest, signal)
    return { content, sizeBytes, spaceUsedBytes: ((await store.size(content)) ?? 0) + storedBytes(manifest) }
  }

  /** Throws if the content may be on a server that is away. `size` fetches content from other servers. */
  const touch = async (digest: string): Promise<boolean> =>
    (await store.touch(digest)) || ((await store.size(digest)) !== undefined && store.touch(digest))

  async function pack(file: string, options: ImportOptions, from = 0): Promise<Imported> {
    const { architecture, signal, progress } = options
    const { size } = await fs.stat(file)
    const layer = await packDisk(file, store, { signal, onProgress: part(progress, from, 100) })
    return put(architecture, size, [layer], options)
  }

  return {
    isShared: store.isShared ?? false,

    empty: (architecture, sizeBytes, boot) => put(architecture, sizeBytes, [], boot),

    async importDisc(file, options) {
      await checkDisc(file)
      return pack(file, options)
    },

    async importDisk(file, options) {
      const { signal, progress } = options
      const folder = path.dirname(file)
      const disk = await temporaryName(folder)
      try {
        const allowed = { maxDataBytes: await roomOn(folder), signal, onProgress: part(progress, 0, 50) }
        const { format } = await normaliseDisk(file, disk, allowed).catch(withoutProgram)
        const warning = bootWarning(options, await readBootPath(disk))
        const packed = await pack(disk, options, format === 'raw' ? 0 : 50)
        return { ...packed, ...(warning !== undefined && { warning }) }
      } finally {
        await fs.rm(disk, { force: true })
      }
    },

    async *read(digest, { start, end }, signal) {
      yield* readRange(await readManifest(store, digest, signal), store, start, end - start, signal)
    },

    async requireDisk(digest) {
      if (!store.requireAll) return
      const { layers } = await readManifest(store, digest)
      await store.requireAll(new Set(resolveLayers(layers).flatMap(({ chunk }) => chunk?.digest ?? [])))
    },

    boot: async (digest, signal) => (await readManifest(store, digest, signal)).boot,

    nextData: async (digest, offset) => nextData(await readManifest(store, digest), offset),

    openQcow2: async (digest) => asQcow2(await readManifest(store, digest), store),

    async hold(digest) {
      if (!(await touch(digest))) return false
      const manifest = await readManifest(store, digest)
      let isComplete = true
      await forEachParallel(
        new Set([...chunksOf(manifest)].map((chunk) => chunk.digest)),
        parallelTouches,
        async (chunk) => {
          isComplete &&= await touch(chunk)
        },
      )
      if (isComplete) await store.hold(digest, manifest)
      return isComplete
    },
  }
}

/** Maps the progress of one part of the work to that of the whole. */
const part =
  (progress: ImportOptions['progress'], from: number, to: number) =>
  ({ bytes, of }: Progress): void =>
    progress({ percent: Math.floor(from + (to - from) * (of === 0 ? 1 : Math.min(1, bytes / of))), bytes })

/** Counts each chunk once, and none that `base` has. */
export function storedBytes(manifest: Manifest, base?: Manifest): number {
  const sizes = new Map([...chunksOf(manifest)].map(({ digest, storedBytes }) => [digest, storedBytes]))
  if (base) for (const { digest } of chunksOf(base)) sizes.delete(digest)
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
}

/** A missing decompression program makes the disk unreadable on this server. */
function withoutProgram(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ENOENT' || !error.syscall?.startsWith('spawn')) throw error
  throw new BadDiskError(`The server has no program "${error.path}" to decompress the file: upload it uncompressed`)
}
