// Frees content that no image refers to. Safe beside puts: content that was put or touched within the grace period
// stays, even if that happens during the deletion.
import type { ContentSource, ContentStore, Listed } from './content/content.ts'
import { chunksOf } from './format/manifest.ts'
import { readManifest } from './pack/stored-manifests.ts'

/** All content that these images need. Holds one manifest in memory at a time. */
export async function referencedBy(
  manifests: Iterable<string> | AsyncIterable<string>,
  source: ContentSource,
  signal?: AbortSignal,
): Promise<Set<string>> {
  const referenced = new Set<string>()
  for await (const digest of manifests) {
    if (referenced.has(digest)) continue
    referenced.add(digest)
    for (const chunk of chunksOf(await readManifest(source, digest, signal))) referenced.add(chunk.digest)
  }
  return referenced
}

export const isCollectable = (
  { digest, modifiedMs }: Listed,
  referenced: ReadonlySet<string>,
  beforeMs: number,
): boolean => !referenced.has(digest) && modifiedMs < beforeMs

interface CollectOptions {
  /** MUST be longer than the time from the last put or touch of an operation to the record that names its manifest. */
  readonly graceMs: number
  readonly now?: () => number
  readonly signal?: AbortSignal
}

/**
 * Calls `manifests` after the start of the grace period, which covers records that are written while this runs. An
 * unreadable manifest ends the collection before anything is deleted, because its content is unknown. Returns how many
 * blobs it deleted.
 */
export async function collect(
  store: ContentStore,
  manifests: () => Iterable<string> | AsyncIterable<string>,
  { graceMs, now = Date.now, signal }: CollectOptions,
): Promise<number> {
  const beforeMs = now() - graceMs
  const referenced = await referencedBy(manifests(), store, signal)
  let deleted = 0
  let after: string | undefined
  do {
    const page = await store.list({ after, limit: 1_000 })
    for (const item of page.items) {
      signal?.throwIfAborted()
      if (isCollectable(item, referenced, beforeMs) && (await store.deleteUnused(item.digest, beforeMs))) deleted += 1
    }
    after = page.after
  } while (after !== undefined)
  return deleted
}
