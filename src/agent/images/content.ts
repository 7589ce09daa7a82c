// An image by its content: a folder `sha256-<hex>` with disk, kernel, initrd, memory and what tart needs, made from the
// manifest of that digest, there whole or not at all. An ISO is the same, of which only the disk is used.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { BaseImage, Boot, MachineFiles, MemoryState } from '../../drivers/driver.ts'
import type { ContentSource } from '../../images/content/content.ts'
import { resolveLayers } from '../../images/format/extents.ts'
import { type Attachment, digestPattern, type Layer, type Manifest } from '../../images/format/format.ts'
import type { DiskFill } from '../../images/pack/disk-fill.ts'
import { restoreAttachment, restoreDisk } from '../../images/pack/restore.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { WorkOptions } from '../../platform/parallel.ts'
import { makeTemporary, removeStale } from '../../platform/temporary-folder.ts'

export interface MakeContentOptions {
  readonly source: ContentSource
  /** The name by which it was asked for; absent for ISOs. */
  readonly name?: string | undefined
  readonly signal: AbortSignal
  progress(percent: number): void
  /** Memory is fetched before the disk: somebody goes on from it. */
  readonly memoryFirst?: boolean | undefined
  /** Everything but the disk, and the memory if that does not come first, is there; the disk can be read while it comes. */
  readonly opened?: ((disk: OpenedDisk) => Promise<void>) | undefined
}

/** A copy that is being made. */
export interface OpenedDisk {
  readonly fill: DiskFill
  /** It has memory, which comes after the disk. */
  readonly lacksMemory: boolean
  /** What is there of the disk. It will have another name when it is whole. */
  readonly file: string
  /** As it will be; but kernel, initrd and memory are where they are now. Without memory that is still to come. */
  readonly image: BaseImage
}

/** What `image.json` says. Paths are relative to its folder. */
interface Description {
  readonly formatVersion: 1
  readonly name?: string | undefined
  readonly digest: string
  readonly architecture: Manifest['architecture']
  readonly virtualSizeBytes: number
  readonly boot: Boot
  readonly os?: Manifest['os']
  /** Of the memory that lies beside the disk. */
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
const fetchesAtOnce = 4

/** Digests come from outside: only one that is one becomes a path. */
function contentFolder(folder: string, digest: string): string {
  if (digestPattern.test(digest)) return path.resolve(folder, digest.replace(':', '-'))
  throw new Error(`"${digest.slice(0, 80)}" is not a digest; update the agent or the server`)
}

export async function findContent(folder: string, digest: string): Promise<BaseImage | undefined> {
  const inside = contentFolder(folder, digest)
  const known = await describedIn(inside)
  return known && imageOf(inside, known)
}

function imageOf(
  inside: string,
  { digest, name = digest, virtualSizeBytes, memory, os, machine, boot }: Description,
): BaseImage {
  return {
    name,
    digest,
    disk: path.join(inside, file.disk),
    format: 'raw',
    virtualSizeBytes,
    boot: bootIn(inside, boot),
    ...(os && { os }),
    ...(memory && { memory: { file: path.join(inside, file.memory), description: memory } }),
    ...(machine && { machine: machineIn(inside, machine) }),
  }
}

/** Images that are there: the digest of each, by the name under which it was asked for first. */
export async function contentNames(folder: string): Promise<[name: string, digest: string][]> {
  const entries = await fs.readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const found = entries.filter((entry) => folderPattern.test(entry)).map((entry) => path.join(folder, entry))
  const known = await Promise.all(found.map(describedIn))
  return known.flatMap((each) => (each?.name === undefined ? [] : [[each.name, each.digest]]))
}

/** Where it is there already, made by another process meanwhile, that one stays. */
export async function makeContent(folder: string, digest: string, options: MakeContentOptions): Promise<void> {
  const { source, name, signal, memoryFirst = false } = options
  const target = contentFolder(folder, digest)
  await removeStale(folder)
  const manifest = await readManifest(source, digest, signal)
  const { architecture, virtualSizeBytes, boot, os, layers, memory, machine } = manifest
  await using temporary = await makeTemporary(folder, path.basename(target))
  const inside = (part: keyof typeof file): string => path.join(temporary.path, file[part])

  const attachments: ['kernel' | 'initrd' | 'memory' | 'machine' | 'nvram', Attachment][] = []
  if (boot.kind === 'kernel') attachments.push(['kernel', boot.kernel])
  if (boot.kind === 'kernel' && boot.initrd) attachments.push(['initrd', boot.initrd])
  if (machine) attachments.push(['machine', machine.config])
  if (machine?.nvram) attachments.push(['nvram', machine.nvram])
  const saved = memory?.state
  const last: typeof attachments = saved && !memoryFirst ? [['memory', saved]] : []
  if (saved && memoryFirst) attachments.push(['memory', saved])
  const ofAll = [...attachments, ...last].reduce(
    (sum, [, { chunks }]) => sum + shownBytes([{ chunks }]),
    shownBytes(layers),
  )
  const work = progressOver(ofAll, options)

  const restore = async (all: typeof attachments): Promise<void> => {
    for (const [part, attachment] of all)
      await restoreAttachment(attachment, source, inside(part), work(shownBytes([attachment])))
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
  await restoreDisk(manifest, source, inside('disk'), {
    ...work(shownBytes(layers)),
    onFill,
  })
  await restore(last)
  await writeFileAtomically(inside('description'), `${JSON.stringify(description, undefined, 2)}\n`)
  signal.throwIfAborted()
  // Takes the place of a damaged one. VMs that run on that have its files open, and those stay.
  await temporary.become(target, { replace: (await findContent(folder, digest)) === undefined })
}

/** Percent of the whole, over parts that are restored one after the other; reported when the number changes. */
function progressOver(of: number, { signal, progress }: MakeContentOptions): (partBytes: number) => WorkOptions {
  let before = 0
  let shown = -1
  return (partBytes) => {
    const from = before
    before += partBytes
    const onProgress: WorkOptions['onProgress'] = ({ bytes }) => {
      const percent = Math.min(100, Math.floor((100 * (from + bytes)) / of))
      if (percent > shown) progress(percent)
      shown = Math.max(shown, percent)
    }
    return { signal, parallel: fetchesAtOnce, onProgress }
  }
}

/** What is fetched for these: chunks that are hidden by later layers are not. */
function shownBytes(layers: readonly Layer[]): number {
  const shown = new Set(resolveLayers(layers).map(({ chunk }) => chunk))
  let bytes = 0
  for (const chunk of shown) bytes += chunk?.storedBytes ?? 0
  return bytes
}

/** Undefined also where it is damaged, or without its disk: then it is made again. */
async function describedIn(inside: string): Promise<Description | undefined> {
  const text = await readFileIfPresent(path.join(inside, file.description))
  if (text === undefined) return undefined
  try {
    const known = JSON.parse(text) as Description
    const { size } = await fs.stat(path.join(inside, file.disk))
    return size === known.virtualSizeBytes ? known : undefined
  } catch {
    return undefined
  }
}

const bootIn = (inside: string, boot: Boot): Boot =>
  boot.kind === 'firmware'
    ? boot
    : {
        ...boot,
        kernel: path.join(inside, boot.kernel),
        ...(boot.initrd !== undefined && { initrd: path.join(inside, boot.initrd) }),
      }

const machineIn = (inside: string, { config, nvram }: MachineFiles): MachineFiles => ({
  config: path.join(inside, config),
  ...(nvram !== undefined && { nvram: path.join(inside, nvram) }),
})
