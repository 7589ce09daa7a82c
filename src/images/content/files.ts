// The files of a content folder: where each digest is, and how reads, puts and the collector share it without locks.
//
// The collector moves content to `leaving` before it decides, so content is in one place or the other. Callers touch
// content before they refer to it; the collector sees the new time and moves the content back.
import fs from 'node:fs/promises'
import path from 'node:path'
import { failpoint } from '../../platform/failpoint.ts'
import { ifAbsent, syncFolder } from '../../platform/files.ts'
import { digestPattern } from '../format/format.ts'
import type { ContentPage, Listed } from './content.ts'
import { removeUnfinished } from './temporary-files.ts'

const shards = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, '0'))

export class ContentFiles {
  readonly folder: string
  /** For files that are not complete. */
  readonly unfinished: string
  readonly #blobs: string
  readonly #leaving: string
  #shards: Promise<void> | undefined

  constructor(folder: string) {
    this.folder = folder
    this.unfinished = path.join(folder, 'unfinished')
    this.#blobs = path.join(folder, 'blobs', 'sha256')
    this.#leaving = path.join(folder, 'leaving')
  }

  /** Repairs what killed processes left. */
  async open(): Promise<void> {
    for (const needed of [this.#blobs, this.unfinished, this.#leaving]) await makeFolder(needed)
    const made = [this.#blobs, path.dirname(this.#blobs), this.folder, path.dirname(this.folder)]
    for (const folder of made) await syncFolder(folder)
    await removeUnfinished(this.unfinished)
    for (const hex of await fs.readdir(this.#leaving)) await this.#moveBack(`sha256:${hex}`)
  }

  shardOf(digest: string): string {
    return path.join(this.#blobs, hexOf(digest).slice(0, 2))
  }

  fileOf(digest: string): string {
    return path.join(this.shardOf(digest), hexOf(digest).slice(2))
  }

  /** Creates the folders on the first write, because most processes that open a store only read. */
  makeShards(): Promise<void> {
    const make = async () => {
      const existing = new Set(await fs.readdir(this.#blobs))
      for (const shard of shards) if (!existing.has(shard)) await makeFolder(path.join(this.#blobs, shard))
      await syncFolder(this.#blobs)
    }
    this.#shards ??= make().catch((error) => {
      this.#shards = undefined
      throw error
    })
    return this.#shards
  }

  /** The result of `look`, also while the collector moves the content. Undefined if the content does not exist. */
  async find<T>(digest: string, look: (file: string) => Promise<T>): Promise<T | undefined> {
    for (const file of [this.fileOf(digest), this.#leavingOf(digest), this.fileOf(digest)]) {
      const found = await look(file).catch(ifAbsent(undefined))
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Returns whether the content exists. If so, the collector keeps it. */
  async touch(digest: string): Promise<boolean> {
    const file = this.fileOf(digest)
    for (let tries = 0; tries < 3; tries += 1) {
      const now = new Date()
      const isTouched = await fs.utimes(file, now, now).then(() => true, ifAbsent(false))
      if (isTouched && (await fs.access(file).then(() => true, ifAbsent(false)))) return true
      // The collector may have just moved it.
      await this.#linkBack(digest)
    }
    return false
  }

  async deleteUnused(digest: string, beforeMs: number): Promise<boolean> {
    const aside = this.#leavingOf(digest)
    if (!(await fs.rename(this.fileOf(digest), aside).then(() => true, ifAbsent(false)))) return false
    failpoint('images.delete')
    const isUnused = await fs.stat(aside).then(({ mtimeMs }) => mtimeMs < beforeMs, ifAbsent(false))
    if (isUnused) await fs.rm(aside, { force: true })
    else await this.#moveBack(digest)
    return isUnused
  }

  async list({ after, limit }: { readonly after?: string | undefined; readonly limit: number }): Promise<ContentPage> {
    const items: Listed[] = []
    const hex = after === undefined ? '' : hexOf(after)
    for (const shard of shards.slice(hex === '' ? 0 : Number.parseInt(hex.slice(0, 2), 16))) {
      for (const rest of (await fs.readdir(path.join(this.#blobs, shard)).catch(ifAbsent([]))).sort()) {
        if (shard + rest <= hex || !digestPattern.test(`sha256:${shard}${rest}`)) continue
        const stat = await fs.stat(path.join(this.#blobs, shard, rest)).catch(ifAbsent(undefined))
        if (stat) items.push({ digest: `sha256:${shard}${rest}`, bytes: stat.size, modifiedMs: stat.mtimeMs })
        if (items.length === limit) return { items, after: items.at(-1)?.digest }
      }
    }
    return { items, after: undefined }
  }

  #leavingOf(digest: string): string {
    return path.join(this.#leaving, hexOf(digest))
  }

  async #linkBack(digest: string): Promise<void> {
    await fs.link(this.#leavingOf(digest), this.fileOf(digest)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST' && error.code !== 'ENOENT') throw error
    })
  }

  async #moveBack(digest: string): Promise<void> {
    await this.#linkBack(digest)
    await fs.rm(this.#leavingOf(digest), { force: true })
  }
}

/** Throws for anything but a digest, because the result becomes part of a path or an address. */
export function hexOf(digest: string): string {
  if (!digestPattern.test(digest)) throw new TypeError(`${JSON.stringify(digest.slice(0, 80))} is not a digest`)
  return digest.slice('sha256:'.length)
}

const makeFolder = (folder: string) => fs.mkdir(folder, { recursive: true, mode: 0o700 })
