// A copy of an image: a folder `sha256-<hex>` with disk, kernel, initrd, memory and tart's files, made from the manifest of that
// digest. It appears under this name when it is complete. An ISO is a copy of which only the disk is used.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { BaseImage, Boot, MachineFiles, MemoryState } from '../../drivers/driver.ts'
import type { ContentSource } from '../../images/content/content.ts'
import { Syncing } from '../../images/content/syncing.ts'
import { resolveLayers } from '../../images/format/extents.ts'
import { type Attachment, digestPattern, type Layer, type Manifest } from '../../images/format/format.ts'
import type { DiskFill } from '../../images/pack/disk-fill.ts'
import { restoreAttachment, restoreDisk } from '../../images/pack/restore.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import { ifAbsent, readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { WorkOptions } from '../../platform/parallel.ts'
import { makeTemporary, removeStale } from '../../platform/temporary-folder.ts'
import { fetchedContent, type SourceOptions } from './content-source.ts'

export interface FetchOptions {
  readonly signal: AbortSignal
  /** Called with the reason when the fetch stalls until something changes elsewhere. */
  readonly onWait?: ((reason: string) => void) | undefined
  /** Called when the disk can be read although it is incomplete. The rest, except for memory, is complete then. */
  readonly opened?: ((disk: OpenedDisk) => Promise<void>) | undefined
  /** Fetch the memory before the disk, for a VM that resumes from it. */
  readonly memoryFirst?: boolean | undefined
}

interface MakeContentOptions extends FetchOptions {
  /** The name under which it was requested; absent for ISOs. */
  readonly name?: string | undefined
  progress(percent: number): void
}

export interface OpenedDisk {
  readonly fill: DiskFill
  /** The image has memory, which is fetched after the disk. */
  readonly lacksMemory: boolean
  /** The incomplete disk, which is renamed when it is complete. */
  readonly file: string
  /** The future copy, except that kernel, initrd and memory have their present paths. */
  readonly image: BaseImage
}

/** The content of `image.json`. Paths are relative to its folder. */
interface Description {
  readonly formatVersion: 1
  readonly name?: string | undefined
  readonly digest: string
  readonly architecture: Manifest['architecture']
  readonly virtualSizeBytes: number
  readonly boot: Boot
  readonly os?: Manifest['os']
  readonly memory?: MemoryState['description']
  readonly machine?: MachineFiles
}

const file = {
  disk: 'disk.raw',
  kernel: 'kernel',
  initrd: 'initrd',
  memory: 'memory',
  machine: 'machine.json',
  nvram: 'nvram.bin',
  description: 'image.json',
} as const
const folderPattern = /^sha256-[0-9a-f]{64}$/
const maxFetches = 4

/** Digests come from the server; only a valid one becomes a path. */
function contentFolder(folder: string, digest: string): string {
  if (digestPattern.test(digest)) return path.resolve(folder, digest.replace(':', '-'))
  throw new Error(`"${digest.slice(0, 80)}" is not a digest; update the agent or the server`)
}

export async function findContent(folder: string, digest: string): Promise<BaseImage | undefined> {
  const copy = contentFolder(folder, digest)
  const description = await readDescription(copy)
  return description && imageOf(copy, description)
}

function imageOf(
  copy: string,
  { digest, name = digest, virtualSizeBytes, memory, os, machine, boot }: Description,
): BaseImage {
  return {
    name,
    digest,
    disk: path.join(copy, file.disk),
    format: 'raw',
    virtualSizeBytes,
    boot: bootIn(copy, boot),
    ...(os && { os }),
    ...(memory && { memory: { file: path.join(copy, file.memory), description: memory } }),
    ...(machine && { machine: machineIn(copy, machine) }),
  }
}

/** The images in a folder, each by the name under which it was requested first. */
export async function contentNames(folder: string): Promise<[name: string, digest: string][]> {
  const entries = await fs.readdir(folder).catch(ifAbsent<string[]>([]))
  const copies = entries.filter((entry) => folderPattern.test(entry)).map((entry) => path.join(folder, entry))
  const descriptions = await Promise.all(copies.map(readDescription))
  return descriptions.flatMap((each) => (each?.name === undefined ? [] : [[each.name, each.digest]]))
}

/**
 * Fetches an image into the store and onto a disk at the same time. Resolves when the disk is synced. The chunks are synced
 * afterwards: one that a power cut damages is detected by its digest and fetched again.
 */
export function fillContent(
  folder: string,
  digest: string,
  options: MakeContentOptions & SourceOptions,
): Promise<void> {
  const syncing = new Syncing({ isLater: true })
  const source = fetchedContent({ ...options, syncing })
  return makeContent(folder, digest, source, options).finally(() => void syncing.end().catch(() => undefined))
}

/** If another process completes the same copy first, that one is kept. */
async function makeContent(
  folder: string,
  digest: string,
  source: ContentSource,
  options: MakeContentOptions,
): Promise<void> {
  const { name, signal, memoryFirst = false } = options
  const target = contentFolder(folder, digest)
  await removeStale(folder)
  const manifest = await readManifest(source, digest, signal)
  const { architecture, virtualSizeBytes, boot, os, layers, memory, machine } = manifest
  await using temporary = await makeTemporary(folder, path.basename(target))
  const pathOf = (part: keyof typeof file): string => path.join(temporary.path, file[part])

  const attachments: ['kernel' | 'initrd' | 'memory' | 'machine' | 'nvram', Attachment][] = []
  if (boot.kind === 'kernel') attachments.push(['kernel', boot.kernel])
  if (boot.kind === 'kernel' && boot.initrd) attachments.push(['initrd', boot.initrd])
  if (machine) attachments.push(['machine', machine.config])
  if (machine?.nvram) attachments.push(['nvram', machine.nvram])
  const saved = memory?.state
  const last: typeof attachments = saved && !memoryFirst ? [['memory', saved]] : []
  if (saved && memoryFirst) attachments.push(['memory', saved])
  const totalBytes = [...attachments, ...last].reduce(
    (sum, [, attachment]) => sum + visibleBytes([attachment]),
    visibleBytes(layers),
  )
  const work = progressOver(totalBytes, options)

  const restore = async (all: typeof attachments): Promise<void> => {
    for (const [part, attachment] of all)
      await restoreAttachment(attachment, source, pathOf(part), work(visibleBytes([attachment])))
  }
  await restore(attachments)
  const description: Description = {
    formatVersion: 1,
    name,
    digest,
    architecture,
    virtualSizeBytes,
    ...(memory && { memory: memory.description }),
    ...(os && { os }),
    ...(machine && { machine: { config: file.machine, ...(machine.nvram && { nvram: file.nvram }) } }),
    boot:
      boot.kind === 'firmware'
        ? boot
        : {
            kind: 'kernel',
            kernel: file.kernel,
            ...(boot.initrd && { initrd: file.initrd }),
            commandLine: boot.commandLine,
          },
  }
  const { opened } = options
  const onFill = async (fill: DiskFill, name: string): Promise<void> => {
    const { memory: here, ...image } = imageOf(temporary.path, description)
    const disk = path.join(target, file.disk)
    const lacksMemory = saved !== undefined && !memoryFirst
    await opened?.({
      fill,
      file: name,
      lacksMemory,
      image: { ...image, ...(here && memoryFirst && { memory: here }), disk },
    })
  }
  await restoreDisk(manifest, source, pathOf('disk'), {
    ...work(visibleBytes(layers)),
    onFill,
  })
  await restore(last)
  await writeFileAtomically(pathOf('description'), `${JSON.stringify(description, undefined, 2)}\n`)
  signal.throwIfAborted()
  // A damaged copy is replaced. VMs that use it have its files open and keep them.
  await temporary.become(target, { replace: (await findContent(folder, digest)) === undefined })
}

function progressOver(of: number, { signal, progress }: MakeContentOptions): (partBytes: number) => WorkOptions {
  let before = 0
  let reported = -1
  return (partBytes) => {
    const from = before
    before += partBytes
    const onProgress: WorkOptions['onProgress'] = ({ bytes }) => {
      const percent = Math.min(100, Math.floor((100 * (from + bytes)) / of))
      if (percent > reported) progress(percent)
      reported = Math.max(reported, percent)
    }
    return { signal, parallel: maxFetches, onProgress }
  }
}

/** The bytes to fetch for these layers; chunks that later layers hide are not fetched. */
function visibleBytes(layers: readonly Layer[]): number {
  let bytes = 0
  for (const chunk of new Set(resolveLayers(layers).map(({ chunk }) => chunk))) bytes += chunk?.storedBytes ?? 0
  return bytes
}

/** Undefined also if the copy is damaged. */
async function readDescription(copy: string): Promise<Description | undefined> {
  const text = await readFileIfPresent(path.join(copy, file.description))
  if (text === undefined) return undefined
  try {
    const description = JSON.parse(text) as Description
    const { size } = await fs.stat(path.join(copy, file.disk))
    return size === description.virtualSizeBytes ? description : undefined
  } catch {
    return undefined
  }
}

const bootIn = (copy: string, boot: Boot): Boot =>
  boot.kind === 'firmware'
    ? boot
    : {
        ...boot,
        kernel: path.join(copy, boot.kernel),
        ...(boot.initrd !== undefined && { initrd: path.join(copy, boot.initrd) }),
      }

const machineIn = (copy: string, { config, nvram }: MachineFiles): MachineFiles => ({
  config: path.join(copy, config),
  ...(nvram !== undefined && { nvram: path.join(copy, nvram) }),
})
