// A server's cache of content that is in a registry: a folder of bounded size, from which the least recently used goes.
import type { Content, PutOptions, Stored } from '../../images/content/content.ts'
import { type ContentFolder, openContentFolder } from '../../images/content/store.ts'

export interface ContentCache extends Pick<ContentFolder, 'folder' | 'size' | 'read' | 'open'> {
  /** Stores the content, and does not evict it before `work` ends. */
  during<T>(
    kept: { content: Content; expected?: Stored; options?: PutOptions },
    work: (stored: Stored) => Promise<T>,
  ): Promise<T>
  /** Deletes the content, even if it is damaged. */
  drop(digest: string): Promise<void>
}

interface CacheOptions {
  readonly folder: string
  readonly maxBytes: number
  failed(error: unknown): void
}

/** Evicts down to this share, so that not every new chunk lists the folder. */
const keptShare = 0.9

export async function openContentCache({ folder, maxBytes, failed }: CacheOptions): Promise<ContentCache> {
  const store = await openContentFolder(folder)
  const using = new Map<string, number>()
  let usedBytes = (await everything()).reduce((sum, { bytes }) => sum + bytes, 0)
  /** The sum of all additions so far; tells what was added while the folder was listed. */
  let addedBytes = 0
  let evicting: Promise<void> | undefined

  async function everything() {
    const all = []
    let after: string | undefined
    do {
      const page = await store.list({ after, limit: 1_000 })
      all.push(...page.items)
      after = page.after
    } while (after !== undefined)
    return all
  }

  async function evict(): Promise<void> {
    const before = addedBytes
    const all = await everything()
    usedBytes = all.reduce((sum, { bytes }) => sum + bytes, addedBytes - before)
    for (const { digest, bytes, modifiedMs } of all.toSorted((one, other) => one.modifiedMs - other.modifiedMs)) {
      if (usedBytes <= maxBytes * keptShare) return
      // Content that was used since it was listed stays.
      if (!using.has(digest) && (await store.deleteUnused(digest, modifiedMs + 1))) usedBytes -= bytes
    }
  }

  function makeRoom(): void {
    if (usedBytes <= maxBytes || evicting) return
    const before = addedBytes
    evicting = evict()
      .catch(failed)
      .finally(() => {
        evicting = undefined
        // Only if something was added: if everything is in use, `during` makes room at its end.
        if (addedBytes !== before) makeRoom()
      })
  }

  const count = (digest: string, by: number): void => {
    const next = (using.get(digest) ?? 0) + by
    if (next === 0) using.delete(digest)
    else using.set(digest, next)
  }

  makeRoom()
  return {
    folder,
    size: (digest) => store.size(digest),
    async read(digest, maxBytes, signal) {
      const content = await store.read(digest, maxBytes, signal)
      await store.touch(digest)
      return content
    },
    async *open(digest, part) {
      await store.touch(digest)
      yield* store.open(digest, part)
    },
    async during({ content, expected, options = {} }, work) {
      // Counted before it is stored, so that it is not evicted in between.
      let held = expected?.digest
      if (held !== undefined) count(held, 1)
      try {
        if (expected) await store.putExpected(expected, content, options)
        const stored = expected ?? (await store.put(content, options))
        if (held === undefined) count(stored.digest, 1)
        held = stored.digest
        usedBytes += stored.bytes
        addedBytes += stored.bytes
        return await work(stored)
      } finally {
        if (held !== undefined) count(held, -1)
        makeRoom()
      }
    },
    drop: async (digest) => void (await store.delete(digest)),
  }
}
