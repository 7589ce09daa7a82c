// What a server keeps of content that is in a registry: what passed through it lately, in a folder of bounded size. All of
// it may be lost at any time.
import {
  type Content,
  NoContentError,
  type PutOptions,
  type Stored,
  WrongContentError,
} from '../../images/content/content.ts'
import { type ContentFolder, openContentFolder } from '../../images/content/store.ts'

export interface ContentCache extends Pick<ContentFolder, 'folder' | 'size' | 'read' | 'open'> {
  /** Kept, whatever else comes, until `work` is over. */
  during<T>(
    kept: { content: Content; expected?: Stored; options?: PutOptions },
    work: (stored: Stored) => Promise<T>,
  ): Promise<T>
  /** Also what is not what it should be, and then nothing is left of it. */
  drop(digest: string): Promise<void>
}

interface CacheOptions {
  readonly folder: string
  readonly maxBytes: number
  failed(error: unknown): void
}

/** Room is made for more than one chunk, so that not every one that comes has the folder listed. */
const leftShare = 0.9

export async function openContentCache({ folder, maxBytes, failed }: CacheOptions): Promise<ContentCache> {
  const store = await openContentFolder(folder)
  const using = new Map<string, number>()
  let usedBytes = (await everything()).reduce((sum, { bytes }) => sum + bytes, 0)
  /** Ever: what comes while the folder is listed is in neither. */
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
      if (usedBytes <= maxBytes * leftShare) return
      // Unless somebody has used it since it was listed.
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
        // Not for ever, where all that is there is in use: whoever is done with it makes room.
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
      // Before it is there: in between it could be evicted.
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

/** What a cache cannot give, whoever it caches has to. */
export const isNotCached = (error: unknown): boolean =>
  error instanceof NoContentError || error instanceof WrongContentError
