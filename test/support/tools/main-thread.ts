// The CPU time of a page's main thread per frame, from Chromium's trace. CPU time varies little on a busy machine.
import assert from 'node:assert/strict'
import type { Browser, Page } from 'playwright-core'

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** Start and duration in microseconds; `tdur` is the time of its thread. */
  readonly ts: number
  readonly dur?: number
  readonly tdur?: number
}

const mark = 'svc3-frame'

/** Calls `work` once per frame. */
const framesOf = (count: number, work: string): string => `new Promise((resolve) => {
  let left = ${count}
  const next = () => {
    performance.mark('${mark}')
    if (left-- === 0) return resolve()
    ${work}
    requestAnimationFrame(next)
  }
  requestAnimationFrame(next)
})`

export interface FrameCosts {
  readonly p50: number
  readonly p95: number
  readonly most: number
}

interface Frames {
  readonly count: number
  /** Runs in the page in each frame. */
  readonly work?: string
  /** Runs in the test at the same time. */
  readonly meanwhile?: () => Promise<void>
}

/** Milliseconds of the main thread for each frame. */
export async function frameCosts(
  browser: Browser,
  page: Page,
  { count, work = '', meanwhile }: Frames,
): Promise<FrameCosts> {
  await page.bringToFront()
  await browser.startTracing(page, { categories: ['toplevel', 'blink.user_timing'] })
  await Promise.all([page.evaluate(framesOf(count, work)), meanwhile?.()])
  const { traceEvents } = JSON.parse(String(await browser.stopTracing())) as { traceEvents: readonly TraceEvent[] }
  const marks = traceEvents.filter(({ name }) => name === mark).sort((a, b) => a.ts - b.ts)
  const [first] = marks
  assert.ok(first && marks.length === count + 1, `${marks.length} of ${count} frames are in the trace`)
  // Unfinished tasks have no duration.
  const isTask = ({ name, pid, tid, tdur }: TraceEvent): boolean =>
    name === 'ThreadControllerImpl::RunTask' && pid === first.pid && tid === first.tid && tdur !== undefined
  const costs = marks.slice(1).map(() => 0)
  for (const { ts, dur = 0, tdur = 0 } of traceEvents.filter(isTask)) {
    // A task belongs to the frame whose mark it made or follows.
    const frame = marks.findLastIndex((each) => each.ts <= ts + dur)
    if (costs[frame] !== undefined) costs[frame] += tdur / 1_000
  }
  const sorted = costs.sort((a, b) => a - b)
  const at = (part: number): number => sorted[Math.floor(part * (sorted.length - 1))] ?? Number.NaN
  assert.ok(at(0.5) > 0, 'no work was seen')
  return { p50: at(0.5), p95: at(0.95), most: at(1) }
}
