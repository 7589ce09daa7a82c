// Caches names for completion for some seconds, so that a second Tab does not wait again, or ask a service that does
// not answer. Errors in reading or writing it are ignored.

import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import type { Host } from '../host.ts'
import { chooseNamespace, findConnection } from './connection.ts'
import { liveNames, type NamesWanted } from './names.ts'

const freshMs = 5_000

interface Kept {
  readonly atMs: number
  readonly names: readonly string[]
}
type Cache = Readonly<Record<string, Kept>>

/** None where the service does not answer in time. Throws where none is known. */
export async function cachedNames(host: Host, wanted: NamesWanted): Promise<readonly string[]> {
  const file = cacheFile(host)
  const key = keyOf(host, wanted)
  const nowMs = host.now().getTime()
  const kept = freshOf(read(file), nowMs)
  const known = Object.hasOwn(kept, key) ? kept[key] : undefined
  if (known) return known.names
  const names = await liveNames(host, wanted).catch((): string[] => [])
  write(file, { ...kept, [key]: { atMs: nowMs, names } })
  return names
}

function cacheFile({ env }: Host): string | undefined {
  const folder = env.XDG_CACHE_HOME || (env.HOME && `${env.HOME}/.cache`)
  return folder ? `${folder}/svc3/names.json` : undefined
}

/** Whatever decides which names somebody may see. Hashed: a token is in it. Throws where no service is known. */
function keyOf(host: Host, { kind, namespace }: NamesWanted): string {
  const connection = findConnection(host)
  const { apiUrl, token } = connection
  const parts = [apiUrl, token, chooseNamespace(host, namespace, connection), kind]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)
}

function read(file: string | undefined): unknown {
  try {
    return file === undefined ? undefined : JSON.parse(fs.readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

function freshOf(value: unknown, nowMs: number): Cache {
  if (typeof value !== 'object' || value === null) return {}
  const isFresh = (kept: unknown): kept is Kept => {
    const { atMs, names } = (kept ?? {}) as Partial<Kept>
    const isKept = typeof atMs === 'number' && Array.isArray(names) && names.every((name) => typeof name === 'string')
    return isKept && atMs <= nowMs && nowMs - atMs < freshMs
  }
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, Kept] => isFresh(entry[1])))
}

/** Atomic: two shells may do this at once. */
function write(file: string | undefined, cache: Cache): void {
  if (file === undefined) return
  const next = `${file}.${process.pid}`
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    fs.writeFileSync(next, JSON.stringify(cache), { mode: 0o600, flag: 'wx' })
    fs.renameSync(next, file)
  } catch {
    fs.rmSync(next, { force: true })
  }
}
