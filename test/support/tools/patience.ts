// Little patience, as of a command line with the service, is more patience than a busy machine may need in tests: timers of
// exactly this length do not run out while a test wants them not to.
import { mock } from 'node:test'

export interface Patience {
  /** Timers of that length run out when they should. */
  end(): void
}

export function withoutLimit(limitMs: number): Patience {
  const [later, timeout] = [globalThis.setTimeout, AbortSignal.timeout]
  const stretched = (milliseconds: number): number => (milliseconds === limitMs ? 170_000 : milliseconds)
  const timer = (work: () => void, milliseconds = 0, ...rest: unknown[]) => {
    const made = later(work, stretched(milliseconds), ...(rest as []))
    // One that was meant to be short does not keep a process.
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
