// What is in a node's folder of images, and what it really takes of the disk: blocks, not lengths, for disks have holes.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ContentStore } from '../../images/content/content.ts'
import { ifAbsent } from '../../images/content/temporary-files.ts'
import { chunksOf } from '../../images/format/manifest.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import type { Evictable } from '../../rules/eviction.ts'
import type { Recipe } from './recipes.ts'

export interface LocalCopy {
  readonly key: string
  readonly folder: string
  readonly bytes: number
  readonly usedMs: number
  /** Where it was pulled from, if it was. */
  readonly pulled?: { readonly reference: string; readonly sizeBytes: number }
}

/** Chunks that go together. */
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
/** Leases of these keys are of nobody's copy: whoever has one is putting chunks that no manifest names yet. */
export const packing = 'packing:'
const graceMs = 10 * 60_000

export async function takeInventory(folder: string, recipes: Readonly<Record<string, Recipe>>): Promise<Inventory> {
  const copies: LocalCopy[] = []
  for (const name of await fs.readdir(folder).catch(ifAbsent<string[]>([]))) {
    const [, hex] = folderPattern.exec(name) ?? []
    const copy = hex && (await copyIn(path.join(folder, name), `sha256:${hex}`))
    if (copy) copies.push(copy)
  }
  for (const [name, recipe] of Object.entries(recipes)) {
    const found = await recipe.find(folder)
    const inside = found && path.dirname(found.disk)
    // One that has no folder of its own cannot go by itself.
    if (inside === undefined || path.dirname(path.resolve(inside)) !== path.resolve(folder)) continue
    const copy = await copyIn(inside, `recipe:${name}`)
    if (copy) copies.push(copy)
  }
  return { copies, chunkBytes: await bytesIn(path.join(folder, 'content', 'blobs')) }
}

/** When a copy is used, its folder says so. */
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
 * Chunks by what they are good for: those of a copy that is here (of the copy used last, where several share them), and
 * those of none, each by itself and before all others. What `kept` names, manifests or chunks, is not among them; nor are
 * those of none while somebody packs, or when they are new: a manifest may yet come for them.
 */
export async function groupChunks(
  store: ContentStore,
  copies: readonly LocalCopy[],
  kept: ReadonlySet<string>,
): Promise<ChunkGroup[]> {
  const isPacking = [...kept].some((key) => key.startsWith(packing))
  const orphansBeforeMs = isPacking ? 0 : Date.now() - graceMs
  const place = new Map<string, string>()
  const known = new Map(copies.map((copy) => [copy.key, copy]))
  const order = copies.toSorted((one, other) => other.usedMs - one.usedMs).map(({ key }) => key)
  for (const key of [...kept, ...order]) {
    if (!key.startsWith('sha256:')) continue
    if (!place.has(key)) place.set(key, key)
    // One that is not here, or is a chunk itself, names nothing.
    const manifest = await readManifest(store, key).catch(() => undefined)
    if (manifest) for (const { digest } of chunksOf(manifest)) if (!place.has(digest)) place.set(digest, key)
  }
  const groups = new Map<string, { bytes: number; usedMs: number; digests: string[] }>()
  let after: string | undefined
  do {
    const page = await store.list({ after, limit: 1_000 })
    for (const { digest, bytes, modifiedMs } of page.items) {
      const key = place.get(digest) ?? digest
      if (kept.has(key) || (!place.has(digest) && modifiedMs >= orphansBeforeMs)) continue
      const group = groups.get(key) ?? { bytes: 0, usedMs: known.get(key)?.usedMs ?? 0, digests: [] }
      group.bytes += bytes
      // The manifest goes last: while it is there, the next look finds its chunks.
      if (digest === key) group.digests.push(digest)
      else group.digests.unshift(digest)
      groups.set(key, group)
    }
    after = page.after
  } while (after !== undefined)
  return [...groups].map(([key, group]) => ({ kind: 'chunks', key, ...group }))
}
