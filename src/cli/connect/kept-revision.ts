// Stores for some minutes the latest revision that a command has seen, so that the next command reads what this one
// wrote, even from another server of the cluster. Errors of the file are ignored.
import fs from 'node:fs'
import path from 'node:path'
import { createRevision, type Revision } from '../../client/revision.ts'
import type { Host } from '../host.ts'
import { userFolder } from './folders.ts'

/** A working server is never further behind than this. */
const storedMs = 600_000
/** Number of other servers to remember. */
const maxStored = 20

type StoredRevisions = Readonly<Record<string, { readonly atMs: number; readonly revision: string }>>

export function keptRevision(host: Host, apiUrl: string): Revision {
  const folder = userFolder(host, 'CACHE')
  if (folder === undefined) return createRevision()
  const file = `${folder}/revisions.json`
  return createRevision(freshOf(read(file), host.now().getTime())[apiUrl]?.revision, (revision) => {
    const nowMs = host.now().getTime()
    const others = Object.entries(freshOf(read(file), nowMs)).slice(-maxStored)
    write(file, { ...Object.fromEntries(others), [apiUrl]: { atMs: nowMs, revision } })
  })
}

function read(file: string): unknown {
  try {
    return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : undefined
  } catch {
    return undefined
  }
}

function freshOf(value: unknown, nowMs: number): StoredRevisions {
  if (typeof value !== 'object' || value === null) return {}
  const isFresh = (kept: unknown): kept is StoredRevisions[string] => {
    const { atMs, revision } = (kept ?? {}) as Partial<StoredRevisions[string]>
    return typeof atMs === 'number' && typeof revision === 'string' && atMs <= nowMs && nowMs - atMs < storedMs
  }
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, StoredRevisions[string]] => isFresh(entry[1])),
  )
}

/** Writes atomically. If two commands write at the same time, one of their revisions is lost. */
function write(file: string, kept: StoredRevisions): void {
  const next = `${file}.${process.pid}`
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    fs.writeFileSync(next, JSON.stringify(kept), { mode: 0o600 })
    fs.renameSync(next, file)
  } catch {
    try {
      fs.rmSync(next, { force: true })
    } catch {
      // The folder cannot be written, so there is no file to remove.
    }
  }
}
