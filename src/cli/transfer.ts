// How a transfer goes on: bytes, rate, time left. Often enough for a terminal, seldom enough for a log.
import { timeLeft } from '../rules/durations.ts'
import { roughSize } from '../rules/sizes.ts'
import type { Context } from './context.ts'
import { type Step, startProgress } from './progress.ts'

export interface Meter {
  /** So many bytes are there now. */
  at(bytes: number): void
  /** Something else than the bytes is to be waited for now. */
  show(step: Step): void
  end(): void
}

const terminalMs = 200
const logMs = 10_000

/** `what` is being moved, such as `image sonoma`; `startBytes` were there before. */
export function startMeter(context: Context, what: string, totalBytes: number, startBytes = 0): Meter {
  const progress = startProgress(context, what)
  const everyMs = context.host.stderr.isTerminal ? terminalMs : logMs
  const startMs = performance.now()
  let shownMs = startMs
  return {
    at(bytes) {
      const nowMs = performance.now()
      if (nowMs - shownMs < everyMs) return
      shownMs = nowMs
      progress.show(stepOf({ bytes, totalBytes, startBytes, seconds: (nowMs - startMs) / 1_000 }))
    },
    show: (step) => progress.show(step),
    end: () => progress.end(),
  }
}

export interface Transferred {
  readonly bytes: number
  readonly totalBytes: number
  readonly startBytes: number
  readonly seconds: number
}

export function stepOf({ bytes, totalBytes, startBytes, seconds }: Transferred): Step {
  const rate = (bytes - startBytes) / Math.max(seconds, 0.001)
  const left = rate > 0 ? `, ${timeLeft((totalBytes - bytes) / rate)} left` : ''
  return {
    text: `${roughSize(bytes)} of ${roughSize(totalBytes)}, ${roughSize(rate)}/s${left}`,
    percent: totalBytes === 0 ? 100 : Math.floor((bytes / totalBytes) * 100),
  }
}
