// The process that measures a program under attack, apart from the attacker, so that the attacker's own work is not measured:
// node watcher.ts JSON, with `Watched`. Each message of its parent ends a period; the answer is what was `Seen` in it.
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type Ping, schedule } from './pinger.ts'

export interface Watched {
  readonly pid: number
  /** An address that is answered at once, over plain HTTP. */
  readonly pingUrl: string
  /** Where the program keeps its data. */
  readonly folder: string
}

export interface Seen {
  /**
   * The longest that a request to `pingUrl` waited for the main thread, in milliseconds. Only the time that this thread
   * was on a processor counts, so that other work on the machine is not blamed on the program.
   */
  readonly heldMs: number
  /** Why requests to `pingUrl` were not answered, although the program runs. */
  readonly unanswered: readonly string[]
  readonly mainThreadMs: number
  /** `mainThreadMs`, and the time in which the main thread waited for a processor. */
  readonly busyMs: number
  readonly rss: Peak
  readonly descriptors: Peak
  readonly diskBytes: Peak
}

/** The largest value in a period, and the value at its beginning. */
export interface Peak {
  readonly first: number
  readonly max: number
}

const pageBytes = 4_096
const { pid, pingUrl, folder } = JSON.parse(process.argv[2] ?? '{}') as Watched

const mainThread = `${pid}/task/${pid}`

let held: Pick<Seen, 'heldMs' | 'unanswered'> = { heldMs: 0, unanswered: [] }
let began = schedule(mainThread)
const peaks = new Map<string, { first: number; max: number }>()

function note(name: string, value: number): void {
  const peak = peaks.get(name)
  if (peak) peak.max = Math.max(peak.max, value)
  else peaks.set(name, { first: value, max: value })
}

async function bytesIn(place: string): Promise<number> {
  const entries = await fs.readdir(place, { withFileTypes: true, recursive: true }).catch(() => [])
  let bytes = 0
  for (const entry of entries) {
    if (!entry.isFile()) continue
    // As the disk counts them: a sparse file takes what was written.
    const stat = await fs.stat(path.join(entry.parentPath, entry.name)).catch(() => undefined)
    bytes += (stat?.blocks ?? 0) * 512
  }
  return bytes
}

/** Growth at which the attack is stopped. */
const excessBytes = 1.5 * 2 ** 30
const memory = async (): Promise<void> => {
  const [, resident = '0'] = (await fs.readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')
  const bytes = Number(resident) * pageBytes
  note('rss', bytes)
  if (bytes - (peaks.get('rss')?.first ?? bytes) > excessBytes) process.send?.('excess')
}
const descriptors = async (): Promise<void> => note('descriptors', (await fs.readdir(`/proc/${pid}/fd`)).length)
const disk = async (): Promise<void> => note('diskBytes', await bytesIn(folder))

async function samples(everyMs: number, take: () => Promise<void>): Promise<never> {
  for (;;) {
    await take()
    await sleep(everyMs)
  }
}

/** When the program ends, its files in /proc disappear. The test reports the end. */
const ended = (): void => process.exit(0)

process.on('message', async () => {
  await Promise.all([memory(), descriptors(), disk()]).catch(ended)
  const now = schedule(mainThread)
  const mainThreadMs = now.onMs - began.onMs
  const busyMs = mainThreadMs + now.waitMs - began.waitMs
  process.send?.({ ...held, mainThreadMs, busyMs, ...Object.fromEntries(peaks) })
  ;[held, began] = [{ heldMs: 0, unanswered: [] }, now]
  peaks.clear()
  await Promise.all([memory(), descriptors(), disk()]).catch(ended)
})
process.on('disconnect', ended)

const work = [samples(50, memory), samples(100, descriptors), samples(400, disk)]
const pinger = new Worker(new URL('pinger.ts', import.meta.url), { workerData: { pid, url: pingUrl } })
pinger.on('message', ({ heldMs, problem }: Ping) => {
  const unanswered = problem === undefined ? held.unanswered : [...held.unanswered, problem]
  held = { heldMs: Math.max(held.heldMs, heldMs), unanswered }
})
pinger.once('exit', ended)
await Promise.race(work).catch(ended)
