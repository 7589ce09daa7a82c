// How a transfer of known length goes on: for those who count bytes as they pass.
import type { Context } from '../context.ts'
import { type Step, startProgress } from './progress.ts'
import type { Bytes } from './rate.ts'

export interface Meter {
  /** So many bytes are there now. */
  at(bytes: number): void
  /** Something else than the bytes is to be waited for now. */
  show(step: Step): void
  end(): void
}

/** `what` is being moved, such as `image sonoma`; `startBytes` were there before. */
export function startMeter(context: Context, what: string, totalBytes: number, startBytes = 0): Meter {
  const progress = startProgress(context, what)
  return {
    at: (bytes) => progress.show({ text: '', bytes: { done: bytes, total: totalBytes, from: startBytes } }),
    show: (step) => progress.show(step),
    end: () => progress.end(),
  }
}

/** Of what says how much has come and which part of the whole that is: how much the whole will be follows. */
export function stepOf(text: string, progress: { readonly percent: number; readonly bytes: number } | undefined): Step {
  const { percent = 0, bytes = 0 } = progress ?? {}
  const moved: Bytes | undefined =
    percent > 0 && bytes > 0 ? { done: bytes, total: Math.round((bytes * 100) / percent) } : undefined
  return { text, percent, ...(moved && { bytes: moved }) }
}
