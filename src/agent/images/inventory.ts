// The inventory of a node's image folder. Sizes count allocated blocks, because disks have holes.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { CopyReport } from '../../api/images/image-cache.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { chunksOf } from '../../images/format/manifest.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import { ifAbsent } from '../../platform/files.ts'
import type { Evictable } from '../../rules/eviction.ts'
import type { Recipe } from './recipes.ts'

export interface LocalCopy {
  readonly key: string
  readonly folder: string
  readonly bytes: number
  readonly usedMs: number
  /** The image in a registry that it was pulled from. */
  readonly pulled?: NonNullable<CopyReport['pulled']>
}

export interface ChunkGroup extends Evictable {
  readonly kind: 'chunks'
  readonly digests: readonly string[]
}

export interface Inventory {
  readonly copies: readonly LocalCopy[]
  readonly chunkBytes: number
}

const folderPattern = /^sha256-([0-9a-f]{64})$/
const blockBytes = 512
/** The prefix of leases that are not on copies: their owners are storing chunks that no manifest names yet. */
export const packing = 'packing:'
/** Newer chunks without a copy are not evicted, because they may get a manifest soon. */
const graceMs = 10 * 60_000

export async function takeInventory(folder: string, recipes: Readonly<Record<string, Recipe>>): Promise<Inventory> {
  const copies: LocalCopy[] = []
  for (const name of await fs.readdir(folder).catch(ifAbsent<string[]>([]))) {
    const [, hex] = folderPattern.exec(name) ?? []
    const copy = hex && (await copyIn(path.join(folder, name), `sha256:${hex}`))
    if (copy) copies.push(copy)
  }
  for (const [name, recipe] of Object.entries(recipes)) {
    const image = await recipe.find(folder)
    const imageFolder = image && path.dirname(image.disk)
    // Without a folder to itself, an image cannot be removed separately.
    if (imageFolder === undefined || path.dirname(path.resolve(imageFolder)) !== path.resolve(folder)) continue
    const copy = await copyIn(imageFolder, `recipe:${name}`)
    if (copy) copies.push(copy)
  }
  return { copies, chunkBytes: await bytesIn(path.join(folder, 'content', 'blobs')) }
}

/** Sets the modification time of the copy's folder, which is the time of its last use. */
export async function markCopyUsed(folder: string): Promise<void> {
  const now = new Date()
  await fs.utimes(folder, now, now).catch(ifAbsent(undefined))
}

async function copyIn(folder: string, key: string): Promise<LocalCopy | undefined> {
  const stat = await fs.stat(folder).catch(ifAbsent(undefined))
  return stat && { key, folder, bytes: await bytesIn(folder), usedMs: stat.mtimeMs }
}

async function bytesIn(folder: string): Promise<number> {
  const entries = await fs.readdir(folder, { recursive: true, withFileTypes: true }).catch(ifAbsent([]))
  let bytes = 0
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const stat = await fs.lstat(path.join(entry.parentPath, entry.name)).catch(ifAbsent(undefined))
    bytes += (stat?.blocks ?? 0) * blockBytes
  }
  return bytes
}

/**
 * Groups the chunks of the store: those of each copy, where the copy used last gets shared chunks, and each chunk without a
 * copy by itself, which is evicted first. Leaves out leased manifests and chunks, and chunks without a copy that are new or
 * may belong to a capture that is being packed.
 */
export async function groupChunks(
  store: ContentStore,
  copies: readonly LocalCopy[],
  leased: ReadonlySet<string>,
): Promise<ChunkGroup[]> {
  const isPacking = [...leased].some((key) => key.startsWith(packing))
  const orphansBeforeMs = isPacking ? 0 : Date.now() - graceMs
  const groupOf = new Map<string, string>()
  const copyOf = new Map(copies.map((copy) => [copy.key, copy]))
  const order = copies.toSorted((one, other) => other.usedMs - one.usedMs).map(({ key }) => key)
  for (const key of [...leased, ...order]) {
    if (!key.startsWith('sha256:')) continue
    if (!groupOf.has(key)) groupOf.set(key, key)
    // Undefined if the manifest is not stored here, or the key is that of a chunk.
    const manifest = await readManifest(store, key).catch(() => undefined)
    if (manifest) for (const { digest } of chunksOf(manifest)) if (!groupOf.has(digest)) groupOf.set(digest, key)
  }
  const groups = new Map<string, { bytes: number; usedMs: number; digests: string[] }>()
  let after: string | undefined
  do {
    const page = await store.list({ after, limit: 1_000 })
    for (const { digest, bytes, modifiedMs } of page.items) {
      const key = groupOf.get(digest) ?? digest
      if (leased.has(key) || (!groupOf.has(digest) && modifiedMs >= orphansBeforeMs)) continue
      const group = groups.get(key) ?? { bytes: 0, usedMs: copyOf.get(key)?.usedMs ?? 0, digests: [] }
      group.bytes += bytes
      // The manifest is deleted last: as long as it exists, the next run finds its chunks.
      if (digest === key) group.digests.push(digest)
      else group.digests.unshift(digest)
      groups.set(key, group)
    }
    after = page.after
  } while (after !== undefined)
  return [...groups].map(([key, group]) => ({ kind: 'chunks', key, ...group }))
}
