// Estimates the rate of a transfer and the time left.
import { timeLeft } from '../../rules/durations.ts'
import { sizeText } from '../../rules/sizes.ts'

export interface Bytes {
  readonly done: number
  readonly total: number
  /** The total is estimated from a rounded percentage. It serves for the time left but is not shown, because it jumps. */
  readonly isTotalRough?: true
  /** Bytes of an earlier attempt, which do not count for the rate. */
  readonly from?: number
}

/** The rate is the average over this time. */
const windowMs = 15_000

/** Returns a function that turns the bytes so far into text and percentage. */
export function startRate(startMs: number): (bytes: Bytes, nowMs: number) => { text: string; percent: number } {
  let samples: { readonly atMs: number; readonly done: number }[] = []
  return ({ done, total, isTotalRough, from = 0 }, nowMs) => {
    if (samples.length === 0) samples.push({ atMs: startMs, done: from })
    // A retry makes the count fall, so the measurement starts again.
    if (done < (samples.at(-1)?.done ?? 0)) samples = [{ atMs: nowMs, done }]
    const isOld = ({ atMs }: { atMs: number }): boolean => nowMs - atMs > windowMs
    while (samples.length > 1 && samples[1] && isOld(samples[1])) samples.shift()
    const [first = { atMs: startMs, done: from }] = samples
    samples.push({ atMs: nowMs, done })
    return transferText({
      bytes: done,
      totalBytes: total,
      isTotalRough,
      startBytes: first.done,
      seconds: (nowMs - first.atMs) / 1_000,
    })
  }
}

interface Transferred {
  readonly bytes: number
  readonly totalBytes: number
  readonly isTotalRough?: true | undefined
  readonly startBytes: number
  readonly seconds: number
}

export function transferText({ bytes, totalBytes, isTotalRough, startBytes, seconds }: Transferred): {
  text: string
  percent: number
} {
  const rate = (bytes - startBytes) / Math.max(seconds, 0.001)
  const left = rate > 0 && bytes < totalBytes ? `, ${timeLeft((totalBytes - bytes) / rate)} left` : ''
  return {
    text: `${sizeText(bytes)}${isTotalRough ? '' : ` of ${sizeText(totalBytes)}`}, ${sizeText(rate)}/s${left}`,
    percent: totalBytes === 0 ? 100 : Math.min(100, Math.floor((bytes / totalBytes) * 100)),
  }
}
