// What a write costs the main thread, and whether that is in proportion to its body.
import type { Shape } from './hostile-bodies.ts'
import type { Way, WriteRig } from './hostile-writes.ts'

/** CPU time of the main thread for a body of 1 MiB, on the machine on which `quietMs` was measured. */
const ceilingMs = 100
/** How long that machine takes to parse `yardstick` when it does nothing else. */
const quietMs = 8
const yardstick = `{${Array.from({ length: 20_000 }, (_, index) => `"${'a'.repeat(40)}${index}":"b"`).join(',')}}`

/** What the rig sends besides the body fits into 1 MiB as well. */
const largest = 1_030_000
/** As many short fields as are not refused for their number. */
const dense = 135_000

async function cpuOf(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

/** How many times slower than quiet this machine is at the moment: CPU time grows when others use its caches and cores. */
async function slowness(): Promise<number> {
  const parse = () => cpuOf(() => JSON.parse(yardstick))
  return Math.max(1, Math.min(await parse(), await parse()) / quietMs)
}

/** The best of three, which tells cost from noise, as the quiet machine would take it. */
async function bestOf(measure: () => Promise<number>, isEnough: (milliseconds: number) => boolean): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 3 && !isEnough(best); attempt++) {
    const taken = await measure()
    best = Math.min(best, isEnough(taken) ? taken : taken / (await slowness()))
  }
  return best
}

/** Why a write by this way and shape costs too much; undefined if it does not. */
export async function problemOf(rig: WriteRig, way: Way, shape: Shape): Promise<string | undefined> {
  const isCheap = (milliseconds: number): boolean => milliseconds <= ceilingMs / 4
  const costOfBytes = (bytes: number) => {
    const text = shape.body(bytes)
    return bestOf(async () => (await rig.send(way, text)).milliseconds, isCheap)
  }
  for (const bytes of [largest, dense]) {
    const whole = await costOfBytes(bytes)
    if (whole > ceilingMs) return `${bytes} bytes take ${whole.toFixed()} ms`
    if (isCheap(whole)) continue
    const half = await costOfBytes(bytes / 2)
    // Four times as long would be quadratic; a few milliseconds are noise.
    if (whole > 2.8 * half + ceilingMs / 10)
      return `${bytes} bytes take ${whole.toFixed()} ms, and half of them ${half.toFixed()} ms`
  }
  return undefined
}

/** Refusals that come before a body is looked at. */
const early: readonly number[] = [401, 403, 404, 405]

/** Why the costs of a way prove nothing, or what its answers have wrong; undefined if all is well. */
export async function answerProblemOf(rig: WriteRig, way: Way): Promise<string | undefined> {
  const statuses = new Set<number>()
  for (const shape of way.shapes) statuses.add((await rig.send(way, shape.body(100))).status)
  if ([...statuses].every((status) => early.includes(status))) return `no body is looked at: ${[...statuses]}`
  // 2.4.x answered so for a VM that does not exist.
  const isFault = statuses.has(500) && way.name !== 'DELETE /resources/vm/delete'
  return isFault ? 'answered with 500' : undefined
}

/** What `work` takes on the quiet machine. `prepare` comes before each try, and is not counted. */
export const costOf = (prepare: () => Promise<unknown>, work: () => Promise<unknown>): Promise<number> =>
  bestOf(
    async () => {
      await prepare()
      return cpuOf(work)
    },
    (milliseconds) => milliseconds <= ceilingMs / 2,
  )
