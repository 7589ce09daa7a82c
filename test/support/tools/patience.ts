// Mocks timers of one length, such as the command line's time limits, so that they do not expire while a test on a busy
// machine does not want them to.
import { mock } from 'node:test'

export interface Patience {
  /** Timers of that length expire normally again. */
  end(): void
}

export function withoutLimit(limitMs: number): Patience {
  const [later, timeout] = [globalThis.setTimeout, AbortSignal.timeout]
  const stretched = (milliseconds: number): number => (milliseconds === limitMs ? 170_000 : milliseconds)
  const timer = (work: () => void, milliseconds = 0, ...rest: unknown[]) => {
    const made = later(work, stretched(milliseconds), ...(rest as []))
    // A short timer must not keep a process alive.
    return milliseconds === limitMs ? made.unref() : made
  }
  const mocks = [
    mock.method(globalThis, 'setTimeout', timer as typeof setTimeout),
    mock.method(AbortSignal, 'timeout', (milliseconds: number) => timeout.call(AbortSignal, stretched(milliseconds))),
  ]
  return {
    end: () => {
      for (const each of mocks) each.mock.restore()
    },
  }
}
