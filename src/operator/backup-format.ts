// What a backup is: a tar file that says what it is first, then the records, the files of the data folder, the content of
// images, and last a checksum of all of it. It is read as a whole before anything of it is used.
import type { FileHandle } from 'node:fs/promises'
import { readTar, type TarEntry, TarError } from '../platform/tar.ts'
import type { Entry } from '../store/store.ts'

/** Of what is below. A program that knows only smaller numbers refuses the file. */
export const backupFormat = 1

export interface BackupHead {
  readonly format: number
  /** Of the program that made it. */
  readonly version: string
  readonly createdAt: string
  readonly revision: string
  readonly records: number
  /** Which data they are. */
  readonly cluster: string
  /** Of the master keys that what is sealed needs. */
  readonly keyIds: readonly string[]
  readonly hasImages: boolean
}

export interface BackupEnd {
  /** Of every byte before it. */
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

/** Files of the data folder that go along: not the keys, which belong elsewhere. */
export const folderFiles = ['users.json', 'config.json'] as const
/** A part of the records is held in memory. */
export const partBytes = 4_000_000

export class BackupError extends Error {
  override readonly name = 'BackupError'
}

export interface Checked {
  readonly head: BackupHead
  readonly sha256: string
  readonly contents: number
}

/** Reads all of it; throws unless it is whole, and of a format that is known. */
export async function checkBackup(file: FileHandle, name: string): Promise<Checked> {
  let head: BackupHead | undefined
  let end: BackupEnd | undefined
  let sha256 = ''
  let records = 0
  let contents = 0
  try {
    for await (const entry of readTar(file)) {
      if (!head) {
        if (entry.name !== names.head) throw new BackupError(`${name} is not a backup of svc3`)
        head = checkedHead(JSON.parse(await textOf(entry)), name)
      } else if (entry.name === names.end) {
        sha256 = entry.sha256Before
        end = JSON.parse(await textOf(entry)) as BackupEnd
      } else if (entry.name.startsWith('records/')) records += linesOf(await textOf(entry)).length
      else if (entry.name.startsWith('content/')) contents += 1
    }
  } catch (error) {
    if (error instanceof TarError || error instanceof SyntaxError) throw damaged(name, error.message)
    throw error
  }
  if (!head || !end) throw damaged(name, 'its end is missing')
  if (end.sha256 !== sha256) throw damaged(name, 'its checksum is another one')
  if (records !== head.records) throw damaged(name, `it has ${records} records, and should have ${head.records}`)
  return { head, sha256, contents }
}

const damaged = (name: string, problem: string): BackupError =>
  new BackupError(`${name} is damaged, or cut off (${problem}): nothing of it was used; take another backup`)

function checkedHead(value: unknown, name: string): BackupHead {
  const head = value as Partial<BackupHead> | null
  if (typeof head?.format !== 'number' || typeof head.revision !== 'string' || typeof head.records !== 'number')
    throw new BackupError(`${name} is not a backup of svc3`)
  if (head.format > backupFormat)
    throw new BackupError(
      `${name} has format ${head.format}, this program knows up to ${backupFormat}: restore it with svc3 ${head.version}, which made it, or a newer one`,
    )
  return head as BackupHead
}

export async function textOf(entry: TarEntry): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of entry.content()) pieces.push(piece)
  return Buffer.concat(pieces).toString('utf8')
}

export const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '')
export const recordsOf = (text: string): readonly BackupRecord[] =>
  linesOf(text).map((line) => JSON.parse(line) as BackupRecord)
