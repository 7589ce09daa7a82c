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
  const of = (bytes: number) => {
    const text = shape.body(bytes)
    return bestOf(async () => (await rig.send(way, text)).milliseconds, isCheap)
  }
  for (const bytes of [largest, dense]) {
    const whole = await of(bytes)
    if (whole > ceilingMs) return `${bytes} bytes take ${whole.toFixed()} ms`
    if (isCheap(whole)) continue
    const [half, quarter] = [await of(bytes / 2), await of(bytes / 4)]
    // Twice as much takes twice as long, and what is small is noise.
    const isLinear = whole <= 2.5 * half + ceilingMs / 10 || half <= 2.5 * quarter + ceilingMs / 10
    if (!isLinear)
      return `${[quarter, half, whole].map((each) => each.toFixed()).join(', ')} ms for 1/4, 1/2, 1 of ${bytes}`
  }
  return undefined
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
