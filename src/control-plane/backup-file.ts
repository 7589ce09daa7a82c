// The format of a backup: a tar file of a manifest, all records at one revision, files of the data folder, the content
// of images, and a checksum. Written while servers run; verified completely before it is restored.
import { createHash } from 'node:crypto'
import fs, { type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { sealedWith } from '../auth/seal.ts'
import { referencedBy } from '../images/collect.ts'
import { type ContentStore, NoContentError } from '../images/content/content.ts'
import { type Clock, systemClock, timestamp } from '../platform/clock.ts'
import { syncFolder } from '../platform/files.ts'
import { contentOf, readTar, type TarEntry, TarError, TarWriter } from '../platform/tar.ts'
import type { ClusterRecord } from '../store/records/collections.ts'
import type { ImageRecord, VmRecord } from '../store/records/fleet-records.ts'
import { keptContents } from '../store/records/image-versions.ts'
import type { Entry, Store } from '../store/store.ts'
import { isPortable } from '../store/store-state.ts'
import { OperatorError } from './data-folder.ts'
import { imagePlaceName } from './image-place.ts'
import { version } from './version.ts'

/** Files of other formats are refused. */
const backupFormat = 2

interface BackupHead {
  readonly format: number
  readonly version: string
  readonly createdAt: string
  readonly revision: string
  readonly records: number
  readonly cluster: string
  readonly keyIds: readonly string[]
  readonly hasImages: boolean
}

interface BackupEnd {
  readonly sha256: string
}

export type BackupRecord = Pick<Entry, 'key' | 'value'>

export const names = {
  head: 'backup.json',
  records: (part: number): string => `records/${String(part).padStart(6, '0')}.ndjson`,
  folder: (name: string): string => `folder/${name}`,
  content: (digest: string): string => `content/${digest.replace(':', '/')}`,
  end: 'checksum.json',
} as const

/**
 * Files of the data folder that are included. Keys are not: they have to be kept elsewhere. Only backups of versions before
 * 3.0.0-alpha.30 need users.json; no server starts on it (`assertUsersMoved`).
 */
export const folderFiles = ['users.json', 'config.json'] as const
/** Limits the memory for a part of the records. */
const partBytes = 4_000_000

export interface Checked {
  readonly head: BackupHead
  readonly sha256: string
  readonly contents: number
}

const pieceBytes = 1_048_576

export const entriesOf = (file: FileHandle): AsyncGenerator<TarEntry> => readTar(piecesOf(file), createHash('sha256'))

/** Reads the file without closing its handle, as a stream would: the open file is verified and then restored. */
async function* piecesOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(pieceBytes), 0, pieceBytes, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** Reads and verifies the whole file. Throws unless it is complete and of a known format. */
export async function checkBackup(file: FileHandle, name: string): Promise<Checked> {
  let head: BackupHead | undefined
  let end: BackupEnd | undefined
  let sha256 = ''
  let records = 0
  let contents = 0
  try {
    for await (const entry of entriesOf(file)) {
      if (!head) {
        if (entry.name !== names.head) throw new OperatorError(`${name} is not a backup of svc3`)
        head = checkedHead(JSON.parse(await entryText(entry)), name)
      } else if (entry.name === names.end) {
        sha256 = entry.sha256Before
        end = JSON.parse(await entryText(entry)) as BackupEnd
      } else if (entry.name.startsWith('records/')) records += linesOf(await entryText(entry)).length
      else if (entry.name.startsWith('content/')) contents += 1
    }
  } catch (error) {
    if (error instanceof TarError || error instanceof SyntaxError) throw damaged(name, error.message)
    throw error
  }
  if (!head || !end) throw damaged(name, 'its end is missing')
  if (end.sha256 !== sha256) throw damaged(name, 'its checksum does not match')
  if (records !== head.records) throw damaged(name, `it has ${records} records instead of ${head.records}`)
  return { head, sha256, contents }
}

const damaged = (name: string, problem: string): OperatorError =>
  new OperatorError(`${name} is damaged or incomplete (${problem}). Use another backup`)

function checkedHead(value: unknown, name: string): BackupHead {
  const head = value as Partial<BackupHead> | null
  if (typeof head?.format !== 'number' || typeof head.revision !== 'string' || typeof head.records !== 'number')
    throw new OperatorError(`${name} is not a backup of svc3`)
  if (head.format !== backupFormat)
    throw new OperatorError(
      `${name} has format ${head.format}, and this program uses ${backupFormat}. ` +
        (head.format > backupFormat
          ? `Restore it with svc3 ${head.version} or newer`
          : 'Restore it with svc3 3.0.0-alpha.31, start that once, then upgrade'),
    )
  return head as BackupHead
}

export const entryText = async (entry: TarEntry): Promise<string> => (await contentOf(entry)).toString('utf8')

const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '')
export const recordsOf = (text: string): readonly BackupRecord[] =>
  linesOf(text).map((line) => JSON.parse(line) as BackupRecord)

export interface BackupReport {
  readonly file: string
  readonly revision: string
  readonly records: number
  /** The number of blobs of images and ISOs. Undefined without images. */
  readonly contents?: number
  readonly bytes: number
  readonly keyIds: readonly string[]
  /** The place of the images, for messages. */
  readonly imagePlace: string
}

interface BackupOptions {
  readonly store: Pick<Store, 'list' | 'get'>
  readonly dataDir: string
  /** Must not exist yet. */
  readonly file: string
  readonly withImages: boolean
  readonly content: ContentStore
  readonly clock?: Clock
}

export async function writeBackup(options: BackupOptions): Promise<BackupReport> {
  const { store, dataDir, file, withImages, clock = systemClock } = options
  const imagePlace = await imagePlaceName(store, dataDir)
  if (await fs.stat(file).catch(() => undefined))
    throw new OperatorError(`${file} already exists. Choose another name, or delete it`)
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
    // If nothing can be written, removing may fail as well, and would hide the first error.
    await fs.rm(draft, { force: true }).catch(() => undefined)
    throw error instanceof NoContentError ? changed() : error
  }
}

export const clusterKey = '/cluster/id'

const changed = (): OperatorError =>
  new OperatorError('An image was deleted during the backup. No backup was made. Try again')

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

/** The manifests that a record names: of images and ISOs, and of VMs, whose image may be deleted. */
export function manifestsNamedBy({ key, value }: Pick<Entry, 'key' | 'value'>): readonly string[] {
  const isImage = key.startsWith('/images/') || key.startsWith('/isos/')
  if (!isImage && !key.startsWith('/vms/')) return []
  const { content } = value as unknown as ImageRecord
  const { imageContent, isoContent, captures = [] } = value as unknown as VmRecord
  const named = isImage ? [content] : [imageContent, isoContent, ...captures.map(({ base }) => base)]
  return named.filter((digest) => digest !== undefined)
}

/** The manifests of earlier versions of an image, which "image restore" restores. */
export const manifestsKeptBy = ({ key, value }: Pick<Entry, 'key' | 'value'>): readonly string[] =>
  key.startsWith('/images/') ? keptContents(value as unknown as ImageRecord) : []

/** All content that the records name. Touching it protects it from the collector until the backup has begun. */
async function neededBy(records: readonly Entry[], content: ContentStore, place: string): Promise<ReadonlySet<string>> {
  const manifests = new Set(records.flatMap(manifestsNamedBy))
  // A kept version whose content is lost cannot be restored anyway, so it does not prevent a backup.
  for (const digest of records.flatMap(manifestsKeptBy))
    if ((await content.size(digest)) !== undefined) manifests.add(digest)
  const needed = await referencedBy(manifests, content).catch((error: unknown) => {
    throw error instanceof NoContentError ? elsewhere(place, error) : error
  })
  for (const digest of needed) if (!(await content.touch(digest))) throw elsewhere(place)
  return needed
}

const elsewhere = (place: string, cause?: unknown): OperatorError =>
  new OperatorError(
    `The content of an image is not in ${place}. Run the backup where the images are, or use --without-images`,
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
