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

interface Progress {
  readonly text: string
  readonly percent: number
}

/** The rate is the average over this time. */
const windowMs = 15_000

/** Returns a function that turns the bytes so far into text and percentage. */
export function startRate(startMs: number): (bytes: Bytes, nowMs: number) => Progress {
  let samples: { readonly atMs: number; readonly done: number }[] = []
  return (bytes, nowMs) => {
    const { done, from = 0 } = bytes
    if (samples.length === 0) samples.push({ atMs: startMs, done: from })
    // A retry makes the count fall, so the measurement starts again.
    if (done < (samples.at(-1)?.done ?? 0)) samples = [{ atMs: nowMs, done }]
    const isOld = ({ atMs }: { atMs: number }): boolean => nowMs - atMs > windowMs
    while (samples.length > 1 && samples[1] && isOld(samples[1])) samples.shift()
    const [first = { atMs: startMs, done: from }] = samples
    samples.push({ atMs: nowMs, done })
    return transferText({ ...bytes, from: first.done }, (nowMs - first.atMs) / 1_000)
  }
}

/** `from` bytes were transferred before the `seconds` began. */
export function transferText({ done, total, isTotalRough, from = 0 }: Bytes, seconds: number): Progress {
  const rate = (done - from) / Math.max(seconds, 0.001)
  const left = rate > 0 && done < total ? `, ${timeLeft((total - done) / rate)} left` : ''
  return {
    text: `${sizeText(done)}${isTotalRough ? '' : ` of ${sizeText(total)}`}, ${sizeText(rate)}/s${left}`,
    percent: total === 0 ? 100 : Math.min(100, Math.floor((done / total) * 100)),
  }
}
