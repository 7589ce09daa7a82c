// Damages a closed SQLite store in every way of a table, and demands that the next start refuses it or has every record.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { type Change, type EntryPage, type Store, StoreError } from '../../src/store/store.ts'
import { collectTo } from './store-watch.ts'

/** As the store makes them. */
const pageBytes = 8_192
/** Of a frame in the write-ahead log, before its page; and of the log itself. */
const frameHeadBytes = 24
const walHeadBytes = 32

/** Mulberry32: the same numbers from the same seed. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

type Random = ReturnType<typeof randomFrom>

const otherByte = (old: number | undefined, random: Random): number => ((old ?? 0) + 1 + random(255)) % 256

/** What happens to one page, or one frame, of the file. */
export const damages: Readonly<Record<string, (page: Buffer, random: Random, others: Buffer) => void>> = {
  'one byte': (page, random) => {
    const at = random(page.length)
    page[at] = otherByte(page[at], random)
  },
  // Where the page says what it is and how many cells it has.
  'one byte of its head': (page, random) => {
    const at = random(Math.min(12, page.length))
    page[at] = otherByte(page[at], random)
  },
  '16 bytes': (page, random) => {
    const at = random(page.length - 16)
    for (let n = at; n < at + 16; n++) page[n] = random(256)
  },
  'a sector': (page, random) => {
    const at = 512 * random(Math.floor(page.length / 512))
    for (let n = at; n < at + 512; n++) page[n] = random(256)
  },
  zeros: (page) => void page.fill(0),
  'another page': (page, random, others) => {
    const at = page.length * random(Math.floor(others.length / page.length))
    others.copy(page, 0, at, at + page.length)
  },
}

interface Sample extends Disposable {
  /** Each with its file, where it begins there, and its length. */
  readonly pages: readonly (readonly [file: string, at: number, length: number])[]
  /** Whether the next start refused it. Throws when it starts and has less, or anything else. */
  isRefused(place: Sample['pages'][number], damage: string, seed: number): Promise<boolean>
}

interface State {
  readonly page: EntryPage
  readonly changes: readonly Change[]
}

async function stateOf(store: Store, since: string): Promise<State> {
  const page = await store.list('')
  return { page, changes: await collectTo(store, '', since, page.rev) }
}

/** `isCut`: as kill -9 leaves it, with its latest writes in the write-ahead log alone. */
export async function damageSample(isCut: boolean): Promise<Sample> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-damage-'))
  const whole = path.join(root, 'whole')
  // Bundled, as in a release: from source each of many starts would take ten times as long.
  const outfile = path.join(root, 'sqlite-thread.mjs')
  const source = path.resolve(import.meta.dirname, '../../src/store/sqlite/sqlite-thread.ts')
  await build({ entryPoints: [source], outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' })
  const thread = pathToFileURL(outfile)
  const store = await openSqlite(whole, { thread })
  const write = async (n: number): Promise<void> => {
    // Most fit a page, some go over several.
    const { key, rev } = await store.create(`/vms/team-${n % 5}/vm-${n}`, {
      n,
      text: 'x'.repeat(n % 25 === 0 ? 20_000 : 900),
    })
    if (n % 3 === 0) await store.update(key, { n, text: 'changed' }, rev)
    else if (n % 10 === 1) await store.delete(key, rev)
  }
  const writeAll = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n += 16)
      await Promise.all(Array.from({ length: Math.min(16, to - n) }, (_, more) => write(n + more)))
  }
  await writeAll(0, 48)
  const since = (await store.list('')).rev
  await store.compact(since)
  await writeAll(48, 96)
  const expected = await stateOf(store, since)
  const kept = path.join(root, 'kept')
  if (isCut) fs.cpSync(whole, kept, { recursive: true })
  await store.close()
  if (!isCut) fs.cpSync(whole, kept, { recursive: true })

  const sizeOf = (name: string): number => fs.statSync(path.join(kept, name), { throwIfNoEntry: false })?.size ?? 0
  const places = (name: string, head: number, length: number): Sample['pages'] => {
    const count = Math.floor((sizeOf(name) - head) / length)
    return Array.from({ length: count }, (_, n) => [name, head + n * length, length] as const)
  }
  const walName = 'svc3.db-wal'
  const wal = places(walName, walHeadBytes, frameHeadBytes + pageBytes)
  const pages = isCut ? [[walName, 0, walHeadBytes] as const, ...wal] : places('svc3.db', 0, pageBytes)

  let tries = 0
  const isRefused: Sample['isRefused'] = async ([name, at, length], damage, seed) => {
    const folder = path.join(root, String(++tries))
    fs.cpSync(kept, folder, { recursive: true })
    const file = path.join(folder, name)
    const bytes = fs.readFileSync(file)
    const what = `${damage} at ${at} of ${name}, seed ${seed}`
    damages[damage]?.(bytes.subarray(at, at + length), randomFrom(seed), fs.readFileSync(path.join(kept, name)))
    fs.writeFileSync(file, bytes)
    try {
      for (let round = 0; round < 2; round++) {
        const opened = await openSqlite(folder, { thread }).catch((error: unknown) => error)
        if (opened instanceof Error) {
          assert.ok(opened instanceof StoreError && opened.message.includes(folder), `${what}: ${opened.stack}`)
          assert.equal(round, 0, `${what}: found only at the second start: ${opened.message}`)
          return true
        }
        const found = opened as Store
        try {
          assert.deepEqual(await stateOf(found, since), expected, what)
        } finally {
          await found.close()
        }
      }
      return false
    } finally {
      fs.rmSync(folder, { recursive: true, force: true })
    }
  }
  return { pages, isRefused, [Symbol.dispose]: () => fs.rmSync(root, { recursive: true, force: true }) }
}
