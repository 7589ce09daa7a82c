// Shared work: a copy is made once for all callers that need it at the same time, and the work ends with its last caller.
import type { BaseImage } from '../../drivers/driver.ts'
import { ifAbsent } from '../../platform/files.ts'
import { orAborted } from '../../platform/retry.ts'
import type { FetchOptions, OpenedDisk } from './content.ts'

/** Without `onWait`, `progress` is called instead. Only the first caller decides `memoryFirst`. */
export interface EnsureOptions extends FetchOptions {
  progress(phase: string, percent?: number): void
  /** The uid of the VM with whose credentials a registry is reached. */
  readonly vm?: string
  /** The copy stays until this stack is disposed. */
  readonly held?: AsyncDisposableStack
}

/** The source of a copy of an image or ISO. */
export interface ImageProvider {
  /** Identifies the copy. Work with equal keys is shared. */
  readonly key: string
  /** For messages: `image x`. */
  readonly title: string
  readonly phase: string
  /** The phase with a detail, by default `phase: line`. */
  phaseWith?(line: string): string
  readonly failure: string
  /** What users should know after a failure. */
  readonly next: string
  find(): Promise<BaseImage | undefined>
  make(options: MakingOptions): Promise<void>
}

export interface MakingOptions extends FetchOptions {
  progress(line?: string, percent?: number): void
}

interface Flight {
  done: Promise<void>
  disk: OpenedDisk | undefined
  readonly cancel: AbortController
  readonly callers: Set<EnsureOptions>
}
/** By folder and key, because agents of one process may share a folder. */
const flights = new Map<string, Flight>()

export async function share(folder: string, provider: ImageProvider, options: EnsureOptions): Promise<void> {
  options.progress(provider.phase)
  const id = `${folder}\n${provider.key}`
  const flight = flights.get(id) ?? start(id, provider, options)
  flight.callers.add(options)
  try {
    // A missing file has its final name by now: the copy is about to be complete.
    if (flight.disk) await options.opened?.(flight.disk).catch(ifAbsent(undefined))
    await orAborted(flight.done, options.signal)
  } finally {
    flight.callers.delete(options)
    if (flight.callers.size === 0) {
      if (flights.get(id) === flight) flights.delete(id)
      flight.cancel.abort()
    }
  }
}

function start(id: string, provider: ImageProvider, { memoryFirst }: EnsureOptions): Flight {
  const { phase, phaseWith = (line) => `${phase}: ${line}`, make } = provider
  const cancel = new AbortController()
  const callers = new Set<EnsureOptions>()
  const flight: Flight = { done: Promise.resolve(), disk: undefined, cancel, callers }
  flights.set(id, flight)
  flight.done = make({
    signal: cancel.signal,
    memoryFirst,
    progress(line, percent) {
      for (const caller of callers) caller.progress(line === undefined ? phase : phaseWith(line), percent)
    },
    onWait(reason) {
      for (const caller of [...callers])
        if (caller.onWait) caller.onWait(reason)
        else caller.progress(phaseWith(reason))
    },
    async opened(disk) {
      flight.disk = disk
      for (const caller of [...callers]) await caller.opened?.(disk)
    },
  })
  return flight
}
