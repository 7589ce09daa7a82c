// The disk space that copies of images may use, and the eviction of copies when it runs out. A copy is renamed before it is
// deleted, so that a killed agent never leaves part of one under its name.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ContentStore } from '../../images/content/content.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Log } from '../../platform/log.ts'
import { exclusively } from '../../platform/parallel.ts'
import { makeTemporary, removeStale } from '../../platform/temporary-folder.ts'
import { chooseEvictions, type Evictable } from '../../rules/eviction.ts'
import { sizeText } from '../../rules/sizes.ts'
import type { Holders } from './holders.ts'
import { type ChunkGroup, groupChunks, type Inventory, type LocalCopy, takeInventory } from './inventory.ts'
import type { Leases } from './leases.ts'
import type { Recipe } from './recipes.ts'

interface Need {
  /** For messages: `image x`. */
  readonly title: string
  readonly diskBytes: number
  readonly chunkBytes: number
}

interface Reservation extends Disposable {
  /** Whether there is room for the chunks beside the disk. */
  readonly keepsChunks: boolean
}

export interface Space {
  readonly quotaBytes: number
  readonly usedBytes: number
}

interface RoomOptions {
  readonly folder: string
  readonly recipes: Readonly<Record<string, Recipe>>
  /** By default four fifths of the free space and the space that copies use. */
  readonly quotaBytes?: number | undefined
  readonly leases: Leases
  readonly holders: Holders
  store(): Promise<ContentStore>
  evicted(key: string): void
  readonly log: Log
}

type Disk = Evictable & { readonly kind: 'disk'; readonly folder: string }

const defaultShare = 0.8
/** The smaller of these two is left free for the rest of the host, whatever the quota is. */
const maxMarginBytes = 2 ** 30
const marginShare = 0.02
const maxAttempts = 5
const inventoryMs = 5 * 60_000

export class CacheSpace {
  readonly #options: RoomOptions
  #inventory: Inventory = { copies: [], chunkBytes: 0 }
  #quotaBytes = 0
  #inventoriedMs = 0
  #reservedBytes = 0

  private constructor(options: RoomOptions) {
    this.#options = options
  }

  static async open(options: RoomOptions): Promise<CacheSpace> {
    await fs.mkdir(options.folder, { recursive: true })
    await removeStale(options.folder)
    const space = new CacheSpace(options)
    await space.#takeInventory()
    return space
  }

  /** Reserves space, evicting copies if necessary. If even that would not suffice, throws and evicts none. */
  reserve(need: Need): Promise<Reservation> {
    return exclusively(this, async () => {
      // Disks are not evicted for chunks, which only make the next fetch cheaper.
      const keepsChunks = await this.#free(need.diskBytes + need.chunkBytes, ['chunks'])
      if (!keepsChunks && !(await this.#free(need.diskBytes))) throw await this.#noRoom(need)
      const bytes = need.diskBytes + (keepsChunks ? need.chunkBytes : 0)
      this.#reservedBytes += bytes
      return {
        keepsChunks,
        [Symbol.dispose]: () => {
          this.#reservedBytes -= bytes
        },
      }
    })
  }

  /** Takes inventory, and evicts copies until the quota is met. */
  settle(): Promise<void> {
    return exclusively(this, async () => {
      const usedBytes = (await this.#free(0)) ? 0 : this.#usedBytes
      if (usedBytes > this.#quotaBytes)
        this.#options.log.warn('cached images in use exceed the quota', { count: usedBytes })
    })
  }

  /** Removes a copy unless it is used or pinned. False if it stays. */
  drop(key: string): Promise<boolean> {
    return exclusively(this, async () => {
      await this.#takeInventory()
      const copy = this.copies.find((each) => each.key === key)
      if (copy && !(await this.#removeDisk(key, copy.folder))) return false
      this.#inventory = { ...this.#inventory, copies: this.copies.filter((each) => each !== copy) }
      return true
    })
  }

  markUsed(key: string): void {
    const copies = this.copies.map((copy) => (copy.key === key ? { ...copy, usedMs: Date.now() } : copy))
    this.#inventory = { ...this.#inventory, copies }
  }

  /** As of the last inventory. */
  get copies(): readonly LocalCopy[] {
    return this.#inventory.copies
  }

  /** Settles if the last inventory is old, because growing disks of VMs leave less space for images. */
  report(): Space {
    if (performance.now() - this.#inventoriedMs > inventoryMs) void this.settle().catch(() => undefined)
    return { quotaBytes: this.#quotaBytes, usedBytes: this.#usedBytes }
  }

  get #usedBytes(): number {
    return this.copies.reduce((sum, { bytes }) => sum + bytes, this.#inventory.chunkBytes)
  }

  async #takeInventory(): Promise<{ freeBytes: number }> {
    const { folder, recipes, quotaBytes } = this.#options
    this.#inventoriedMs = performance.now()
    this.#inventory = await takeInventory(folder, recipes)
    const { bavail, bsize, blocks } = await fs.statfs(folder)
    const freeBytes = bavail * bsize - Math.min(maxMarginBytes, blocks * bsize * marginShare)
    this.#quotaBytes = quotaBytes ?? Math.floor(defaultShare * (Math.max(0, freeBytes) + this.#usedBytes))
    return { freeBytes }
  }

  /** Evicts until so many bytes are free; returns whether they are. Repeats if a copy came into use before that. */
  async #free(bytes: number, kinds: readonly Evictable['kind'][] = ['chunks', 'disk']): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      const beforeMs = Date.now()
      const { freeBytes } = await this.#takeInventory()
      const excess = bytes + this.#reservedBytes + Math.max(this.#usedBytes - this.#quotaBytes, -freeBytes)
      if (excess <= 0) return true
      const candidates = (await this.#candidates()).filter(({ kind }) => kinds.includes(kind))
      const evictions = chooseEvictions(candidates, excess)
      if (!evictions || attempt > maxAttempts) return false
      for (const each of evictions) await this.#evict(each, beforeMs)
    }
  }

  async #candidates(): Promise<(Disk | ChunkGroup)[]> {
    const { holders, leases, store } = this.#options
    const isHeld = await holders.held()
    const leased = await leases.taken()
    const disks = this.copies
      .filter(({ key }) => !isHeld(key) && !leased.has(key))
      .map((copy) => ({ kind: 'disk' as const, ...copy }))
    return [...disks, ...(await groupChunks(await store(), this.copies, leased))]
  }

  async #evict(each: Disk | ChunkGroup, beforeMs: number): Promise<void> {
    const { log, store } = this.#options
    log.info('removed a cached image to free space', { kind: each.kind, name: each.key, count: each.bytes })
    if (each.kind === 'disk') return void (await this.#removeDisk(each.key, each.folder))
    const chunks = await store()
    for (const digest of each.digests) {
      await chunks.deleteUnused(digest, beforeMs)
      failpoint('agent.evict.chunk')
    }
  }

  async #removeDisk(key: string, copy: string): Promise<boolean> {
    const { folder, leases, holders, evicted } = this.#options
    await using aside = await makeTemporary(folder, path.basename(copy))
    const isRemoved = await leases.remove(
      key,
      async () => !(await holders.held())(key),
      async () => {
        failpoint('agent.evict.rename')
        await fs.rename(copy, path.join(aside.path, 'copy'))
      },
    )
    failpoint('agent.evict.delete')
    if (isRemoved) evicted(key)
    return isRemoved
  }

  async #noRoom({ title, diskBytes }: Need): Promise<Error> {
    const { freeBytes } = await this.#takeInventory()
    const evictableBytes = (await this.#candidates()).reduce((sum, { bytes }) => sum + bytes, 0)
    const figures = [
      `it needs ${sizeText(diskBytes)}`,
      `cached images use ${sizeText(this.#usedBytes + this.#reservedBytes)} of ${sizeText(this.#quotaBytes)}`,
      `of which ${sizeText(evictableBytes)} can be removed`,
      `and ${sizeText(Math.max(0, freeBytes))} of the disk is free`,
    ]
    return new Error(
      `not enough space for ${title}: ${figures.join(', ')}; delete VMs, remove cached images (svc3 imagecache remove), or raise --image-quota of the agent`,
    )
  }
}
