// Makes a backup: every record at one revision, and all that they need of the data folder. While servers run: what changes
// meanwhile is in the next one.
import fs from 'node:fs/promises'
import path from 'node:path'
import { sealedWith } from '../auth/seal.ts'
import { imagePlaceName } from '../control-plane/image-place.ts'
import { version } from '../control-plane/version.ts'
import { referencedBy } from '../images/collect.ts'
import { type ContentStore, NoContentError } from '../images/content.ts'
import { type Clock, systemClock, timestamp } from '../platform/clock.ts'
import { syncFolder } from '../platform/files.ts'
import { TarWriter } from '../platform/tar.ts'
import type { ClusterRecord } from '../store/records/collections.ts'
import type { ImageRecord, VmRecord } from '../store/records/fleet-records.ts'
import type { Entry, Store } from '../store/store.ts'
import { isPortable } from '../store/store-state.ts'
import { BackupError, type BackupHead, backupFormat, folderFiles, names, partBytes } from './backup-format.ts'

export interface BackupReport {
  readonly file: string
  readonly revision: string
  readonly records: number
  /** Pieces of images and ISOs; undefined when they were left out. */
  readonly contents?: number
  readonly bytes: number
  readonly keyIds: readonly string[]
  /** What has the content of the images, for messages. */
  readonly imagePlace: string
}

export interface BackupOptions {
  readonly store: Pick<Store, 'list' | 'get'>
  readonly dataDir: string
  /** MUST NOT be there yet. */
  readonly file: string
  readonly withImages: boolean
  readonly content: ContentStore
  readonly clock?: Clock
}

export async function writeBackup(options: BackupOptions): Promise<BackupReport> {
  const { store, dataDir, file, withImages, clock = systemClock } = options
  const imagePlace = await imagePlaceName(store, dataDir)
  if (await fs.stat(file).catch(() => undefined))
    throw new BackupError(`${file} is there already: choose another name, or remove it`)
  const { entries, rev } = await store.list('')
  const records = entries.filter(isPortable)
  const content = withImages ? options.content : undefined
  const digests = content && (await neededBy(records, content, imagePlace))
  const head: BackupHead = {
    format: backupFormat,
    version,
    createdAt: timestamp(clock.now()),
    revision: rev,
    records: records.length,
    cluster: (records.find(({ key }) => key === clusterKey)?.value as ClusterRecord | undefined)?.uid ?? '',
    keyIds: keyIdsOf(records),
    hasImages: withImages,
  }
  const draft = `${file}.${process.pid}.partial`
  try {
    const bytes = await write(draft, async (tar) => {
      await tar.add(names.head, Buffer.from(`${JSON.stringify(head, null, 2)}\n`))
      let part = 0
      for (const lines of partsOf(records)) await tar.add(names.records(part++), Buffer.from(lines))
      for (const name of folderFiles) {
        const found = await fs.readFile(path.join(dataDir, name)).catch(ifAbsent)
        if (found) await tar.add(names.folder(name), found)
      }
      for (const digest of digests ?? []) await tar.add(names.content(digest), ...(await opened(content, digest)))
    })
    await fs.rename(draft, file)
    await syncFolder(path.dirname(file))
    const { revision, keyIds } = head
    const contents = digests && { contents: digests.size }
    return { file, revision, records: records.length, ...contents, bytes, keyIds, imagePlace }
  } catch (error) {
    await fs.rm(draft, { force: true })
    throw error instanceof NoContentError ? changed() : error
  }
}

export const clusterKey = '/cluster/id'

const changed = (): BackupError =>
  new BackupError('an image was deleted while its content was copied: no backup was made; try again')

async function write(file: string, fill: (tar: TarWriter) => Promise<void>): Promise<number> {
  const handle = await fs.open(file, 'wx', 0o600)
  try {
    const tar = new TarWriter(handle)
    await fill(tar)
    await tar.add(names.end, Buffer.from(`${JSON.stringify({ sha256: tar.sha256() })}\n`))
    await tar.end()
    await handle.sync()
    return tar.bytes
  } finally {
    await handle.close()
  }
}

function* partsOf(records: readonly Entry[]): Generator<string> {
  let part = ''
  for (const { key, value } of records) {
    part += `${JSON.stringify({ key, value })}\n`
    if (part.length < partBytes) continue
    yield part
    part = ''
  }
  if (part !== '') yield part
}

function keyIdsOf(records: readonly Entry[]): readonly string[] {
  const sealed = records.map(({ value }) => (value as { sealed?: unknown } | null)?.sealed)
  const ids = sealed.filter((text) => typeof text === 'string').map(sealedWith)
  return [...new Set(ids)].sort()
}

/** What a record names of content: of images and ISOs, and of VMs whatever became of theirs. */
export function manifestsNamedBy({ key, value }: Pick<Entry, 'key' | 'value'>): readonly string[] {
  const isImage = key.startsWith('/images/') || key.startsWith('/isos/')
  if (!isImage && !key.startsWith('/vms/')) return []
  const { content } = value as unknown as ImageRecord
  const { imageContent, isoContent, captures = [] } = value as unknown as VmRecord
  const named = isImage ? [content] : [imageContent, isoContent, ...captures.map(({ base }) => base)]
  return named.filter((digest) => digest !== undefined)
}

/** All content that the records name, kept from the collector for as long as it takes to begin. */
async function neededBy(records: readonly Entry[], content: ContentStore, place: string): Promise<ReadonlySet<string>> {
  const needed = await referencedBy(new Set(records.flatMap(manifestsNamedBy)), content).catch((error: unknown) => {
    throw error instanceof NoContentError ? elsewhere(place, error) : error
  })
  for (const digest of needed) if (!(await content.touch(digest))) throw elsewhere(place)
  return needed
}

const elsewhere = (place: string, cause?: unknown): BackupError =>
  new BackupError(
    `content of an image is not in ${place}: make the backup where the images are, or leave them out with --without-images`,
    { cause },
  )

async function opened(content: ContentStore | undefined, digest: string): Promise<[AsyncIterable<Buffer>, number]> {
  const bytes = await content?.size(digest)
  if (!content || bytes === undefined) throw new NoContentError(digest)
  return [content.open(digest), bytes]
}

function ifAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
