// A disk that is read while it is fetched. A read of a missing part waits for the fetch, or for the next one when that fails.
import fs from 'node:fs/promises'
import type { ImageFigures } from '../../api/nodes/agent.ts'
import { readFully } from '../../images/content/blocks.ts'
import type { ServedDisk } from '../../images/nbd/server.ts'
import type { DiskFill } from '../../images/pack/disk-fill.ts'
import { orAborted } from '../../platform/retry.ts'

/** Where reads are answered from at the moment: a fill in progress, or the complete copy. */
interface DiskContent extends Pick<DiskFill, 'has' | 'ready'> {
  readonly file: fs.FileHandle
}

export type ReadFigures = Pick<ImageFigures, 'reads' | 'readWaitMs'>

const idleTimeoutMs = 10 * 60_000

export class ArrivingDisk implements ServedDisk {
  readonly bytes: number
  readonly #figures: ReadFigures
  #content: DiskContent
  #replaced = Promise.withResolvers<void>()
  #waitingReads = 0
  #idle = Promise.withResolvers<void>()

  constructor(bytes: number, content: DiskContent, figures: ReadFigures) {
    this.bytes = bytes
    this.#content = content
    this.#figures = figures
  }

  async read(target: Buffer, offset: number, signal: AbortSignal): Promise<void> {
    this.#figures.reads += 1
    for (;;) {
      const isThere = this.#content.has(offset, target.length)
      const content = isThere ? this.#content : await this.#waitFor(offset, target.length, signal)
      try {
        if (await readFully(content.file, target, offset)) return
        throw new Error('the disk was truncated')
      } catch (error) {
        // A file that was replaced is closed.
        if (content === this.#content) throw error
      }
    }
  }

  async #waitFor(offset: number, length: number, signal: AbortSignal): Promise<DiskContent> {
    const startMs = performance.now()
    this.#waitingReads += 1
    try {
      for (;;) {
        const content = this.#content
        try {
          await content.ready(offset, length, signal)
          return content
        } catch (error) {
          if (signal.aborted) throw error
          // The fetch failed and is retried.
          if (content === this.#content) await orAborted(this.#replaced.promise, signal)
        }
      }
    } finally {
      this.#figures.readWaitMs += Math.round(performance.now() - startMs)
      this.#waitingReads -= 1
      if (this.#waitingReads === 0) {
        this.#idle.resolve()
        this.#idle = Promise.withResolvers()
      }
    }
  }

  /** Resolves when no read waits for missing content. */
  async idle(signal: AbortSignal): Promise<void> {
    if (this.#waitingReads === 0) return
    const timeout = AbortSignal.timeout(idleTimeoutMs)
    await orAborted(this.#idle.promise, AbortSignal.any([signal, timeout])).catch((error: unknown) => {
      if (!timeout.aborted || signal.aborted) throw error
      throw new Error('timed out fetching part of the image; try again when the image is complete')
    })
  }

  /** Closes the previous file, because a deleted file takes up space while it is open. */
  async replace(content: DiskContent): Promise<void> {
    const before = this.#content
    this.#content = content
    this.#replaced.resolve()
    this.#replaced = Promise.withResolvers()
    await before.file.close()
  }

  close(): Promise<void> {
    return this.#content.file.close()
  }
}

export const openCopy = async (file: string): Promise<DiskContent> => ({
  file: await fs.open(file, 'r'),
  has: () => true,
  ready: async () => true,
})
