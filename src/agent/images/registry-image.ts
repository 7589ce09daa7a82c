// An image in a registry, reached straight from this node: as whom, the server says, each time it is needed.
import type { RegistryLogin } from '../../api/nodes/captures.ts'
import type { ContentSource } from '../../images/content/content.ts'
import type { ArtifactSource } from '../../oci/artifact/target.ts'
import { type Inspected, inspectImage } from '../../oci/inspect.ts'
import { waitingLine } from '../../oci/registry/patience.ts'
import { openRegistry } from '../../oci/registry/registry.ts'
import { reasonOf } from '../../platform/reason.ts'
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

interface OpenedRegistryImage {
  readonly image: Inspected
  readonly source: ArtifactSource
  close(): void
}

async function openRegistryImage({ reference, vm, ask, signal, waits }: RegistryPlace): Promise<OpenedRegistryImage> {
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
    const image = await inspectImage(source, parsed.reference.target, { signal })
    return { image, source, close: () => registry.close() }
  } catch (error) {
    registry.close()
    throw error
  }
}

export async function withRegistryImage<T>(
  place: RegistryPlace,
  use: (image: Inspected, source: ArtifactSource) => Promise<T>,
): Promise<T> {
  const { image, source, close } = await openRegistryImage(place)
  try {
    return await use(image, source)
  } finally {
    close()
  }
}

interface RegistryContent extends ContentSource {
  /** Nobody reads any more. */
  close(): void
}

/**
 * The content of an image of ours. The registry is reached when something of it is needed first, and anew after each failure:
 * by then there may be another password, or a registry.
 */
export function registryContent(place: RegistryPlace, content: string): RegistryContent {
  let current: Promise<Connected> | undefined
  const open = async (): Promise<Connected> => {
    const { image, close } = await openRegistryImage(place)
    if (image.ours?.imageDigest === content) return { content: image.ours.content, close, readers: 0 }
    close()
    throw new Error('the registry returned other content for this digest')
  }
  return {
    async read(...what) {
      current ??= open()
      const used = current
      let one: Connected | undefined
      try {
        one = await used
        one.readers += 1
        return await one.content.read(...what)
      } catch (error) {
        if (current === used) current = undefined
        throw named(place, error)
      } finally {
        if (one && --one.readers === 0 && current !== used) one.close()
      }
    },
    close: () => void current?.then(({ close }) => close()).catch(() => undefined),
  }
}

/** Whoever waits for it learns which registry it is. */
function named({ reference }: RegistryPlace, error: unknown): unknown {
  const host = reference.slice(0, reference.indexOf('/'))
  const reason = reasonOf(error)
  return reason.includes(host) ? error : new Error(`registry ${host}: ${reason}`, { cause: error })
}

interface Connected {
  readonly content: ContentSource
  close(): void
  readers: number
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
