// An image in a registry, reached straight from this node: as whom, the server says, each time it is needed.
import type { RegistryLogin } from '../../api/nodes/captures.ts'
import type { Source } from '../../oci/artifact/target.ts'
import { type Inspected, inspectImage } from '../../oci/inspect.ts'
import { waitingLine } from '../../oci/registry/patience.ts'
import { openRegistry } from '../../oci/registry/registry.ts'
import { timeLeft } from '../../rules/durations.ts'
import { parseImageReference } from '../../rules/image-reference.ts'
import { backOff, type RetryPolicy, wait } from '../../rules/retry.ts'
import { isRetriable } from '../link/connection.ts'

/** How the registry of the image of a VM is reached. To use, and to forget. */
export type AskLogin = (vm: string, signal: AbortSignal) => Promise<RegistryLogin>

interface RegistryPlace {
  /** `host/repository@sha256:…` */
  readonly reference: string
  /** Its uid. */
  readonly vm: string | undefined
  readonly ask: AskLogin | undefined
  readonly signal: AbortSignal
  /** The registry does not answer: why, and when it is tried next. */
  waits(reason: string): void
}

/** A server that is restarted is waited for. */
const patience: RetryPolicy = { attempts: 8, firstDelayMs: 500, maxDelayMs: 10_000, maxRetryAfterMs: 0 }

export async function withRegistryImage<T>(
  { reference, vm, ask, signal, waits }: RegistryPlace,
  use: (image: Inspected, source: Source) => Promise<T>,
): Promise<T> {
  const parsed = parseImageReference(reference, 'pull')
  if (!parsed.ok) throw new Error(`${parsed.problem}; ${parsed.hint}`)
  if (!ask || vm === undefined) throw new Error('its registry cannot be reached from here')
  const registry = openRegistry({
    ...(await patiently(() => ask(vm, signal), signal)),
    onWaiting(waiting) {
      const line = waitingLine(waiting)
      if (line !== undefined) waits(line)
    },
  })
  try {
    const source = registry.repository(parsed.reference.repository)
    return await use(await inspectImage(source, parsed.reference.target, { signal }), source)
  } finally {
    registry.close()
  }
}

async function patiently<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      if (attempt >= patience.attempts || !isRetriable(error)) throw error
      await wait(backOff(attempt, patience, Math.random), signal)
    }
  }
}

/** How long it will take, judged by how long it has taken: `3 min left`. Nothing can be said at its beginning. */
export function leftAfter(beganMs: number): (percent: number) => string | undefined {
  return (percent) => {
    const seconds = (performance.now() - beganMs) / 1_000
    return percent < 1 || seconds < 1 ? undefined : `${timeLeft((seconds * (100 - percent)) / percent)} left`
  }
}
