// Work that several may wait for: done once, whoever asks for it meanwhile, and no longer than somebody waits.

import type { BaseImage } from '../../drivers/driver.ts'
import { ifAbsent } from '../../images/content/temporary-files.ts'
import { orAborted } from '../../rules/retry.ts'
import type { OpenedDisk } from './content.ts'

export interface EnsureOptions {
  readonly signal: AbortSignal
  progress(phase: string, percent?: number): void
  /** It stands still, and why; reported by `progress` where this is left out. */
  waits?(reason: string): void
  /** It can be read while it comes. */
  opened?(disk: OpenedDisk): Promise<void>
  /** Its memory is needed before its disk, where this is the first who asks for it. */
  readonly memoryFirst?: boolean | undefined
  /** For whom: a registry is reached with the credentials for this VM (its uid). */
  readonly vm?: string
  /** It is to be used: it stays where it is until this is disposed of. */
  readonly held?: AsyncDisposableStack
}

/** Where a copy of an image or ISO comes from, and how it is made. */
export interface ImageProvider {
  /** Of the copy. Equal ones are the same work. */
  readonly key: string
  /** For messages: `image x`. */
  readonly title: string
  readonly phase: string
  /** The phase, with what there is to say of it. */
  said?(line: string): string
  readonly failure: string
  /** What to know after a failure. */
  readonly next: string
  find(): Promise<BaseImage | undefined>
  make(options: MakingOptions): Promise<void>
}

interface MakingOptions {
  readonly signal: AbortSignal
  progress(line?: string, percent?: number): void
  /** It stands still until something changes elsewhere: what. */
  waits(reason: string): void
  opened(disk: OpenedDisk): Promise<void>
  readonly memoryFirst?: boolean | undefined
}

interface Making {
  made: Promise<void>
  disk: OpenedDisk | undefined
  readonly cancel: AbortController
  readonly waiting: Set<EnsureOptions>
}
/** By folder and what is made: agents of one process share a folder, and the work. */
const makings = new Map<string, Making>()

export async function share(folder: string, provider: ImageProvider, options: EnsureOptions): Promise<void> {
  options.progress(provider.phase)
  const place = `${folder}\n${provider.key}`
  const making = makings.get(place) ?? start(place, provider, options)
  making.waiting.add(options)
  try {
    // One that is under its last name already is whole in a moment.
    if (making.disk) await options.opened?.(making.disk).catch(ifAbsent(undefined))
    await orAborted(making.made, options.signal)
  } finally {
    making.waiting.delete(options)
    // The last one that loses interest ends the work. Whoever comes while it winds up begins anew.
    if (making.waiting.size === 0) {
      if (makings.get(place) === making) makings.delete(place)
      making.cancel.abort()
    }
  }
}

function start(
  place: string,
  { phase, said = (line) => `${phase}: ${line}`, make }: ImageProvider,
  { memoryFirst }: EnsureOptions,
): Making {
  const cancel = new AbortController()
  const waiting = new Set<EnsureOptions>()
  const progress = (line?: string, percent?: number): void => {
    for (const one of waiting) one.progress(line === undefined ? phase : said(line), percent)
  }
  const waits = (reason: string): void => {
    for (const one of [...waiting])
      if (one.waits) one.waits(reason)
      else one.progress(said(reason))
  }
  const opened = async (disk: OpenedDisk): Promise<void> => {
    making.disk = disk
    for (const one of [...waiting]) await one.opened?.(disk)
  }
  const making: Making = { made: Promise.resolve(), disk: undefined, cancel, waiting }
  making.made = make({ signal: cancel.signal, progress, waits, opened, memoryFirst })
  makings.set(place, making)
  return making
}
