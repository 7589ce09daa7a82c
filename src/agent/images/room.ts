// Room for copies of images: what they may take of the disk, and what goes when there is none. A copy is renamed away
// before it is deleted, so that a killed agent leaves none that is half there.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ContentStore } from '../../images/content/content.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Log } from '../../platform/log.ts'
import { makeTemporary, removeStale } from '../../platform/temporary-folder.ts'
import { chooseEvictions, type Evictable } from '../../rules/eviction.ts'
import { sizeText } from '../../rules/sizes.ts'
import type { Held, Holders } from './holders.ts'
import { type ChunkGroup, groupChunks, type Inventory, type LocalCopy, takeInventory } from './inventory.ts'
import type { Leases } from './leases.ts'
import type { Recipe } from './recipes.ts'

interface Need {
  /** For messages: `image x`. */
  readonly title: string
  readonly diskBytes: number
  /** Of the chunks that it is made of and that are not here. */
  readonly chunkBytes: number
}

interface Reservation extends Disposable {
  /** There is room for the chunks beside the disk. */
  readonly keepsChunks: boolean
}

export interface Space {
  readonly quotaBytes: number
  readonly usedBytes: number
}

export interface CacheSpace {
  /** Evicts what must go for it. Throws when that is not enough, and then nothing has gone. */
  take(need: Need): Promise<Reservation>
  /** Looks at what is there, and evicts what is over the quota. */
  settle(): Promise<void>
  /** Removes a copy that nobody uses or keeps. Whether it is gone. */
  drop(key: string): Promise<boolean>
  /** It was used just now. */
  used(key: string): void
  /** As of the last look. */
  copies(): readonly LocalCopy[]
  space(): Space
}

interface RoomOptions {
  readonly folder: string
  readonly recipes: Readonly<Record<string, Recipe>>
  /** Undefined: four fifths of what is free and what they take. */
  readonly quotaBytes?: number | undefined
  readonly leases: Leases
  readonly holders: Holders
  store(): Promise<ContentStore>
  /** A copy is gone. */
  evicted(key: string): void
  readonly log: Log
}

type Disk = Evictable & { readonly kind: 'disk'; readonly folder: string }

const defaultShare = 0.8
/** Left free for the rest of the host, whatever the quota is. */
const maxMarginBytes = 2 ** 30
const marginShare = 0.02
const triesAtMost = 5
const lookEveryMs = 5 * 60_000
const everything = ['chunks', 'disk'] as const

/** By folder: agents of one process share it, and what they have promised. */
const shared = new Map<string, { reservedBytes: number; last: Promise<unknown> }>()

export async function openRoom(options: RoomOptions): Promise<CacheSpace> {
  const { folder, recipes, quotaBytes, leases, holders, log } = options
  const state = shared.get(folder) ?? { reservedBytes: 0, last: Promise.resolve() }
  shared.set(folder, state)
  let inventory: Inventory = { copies: [], chunkBytes: 0 }
  let quota = quotaBytes ?? 0
  let lookedAtMs = 0

  /** One decision at a time. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = state.last.then(work)
    state.last = turn.catch(() => undefined)
    return turn
  }
  const usedBytes = (): number => inventory.copies.reduce((sum, { bytes }) => sum + bytes, inventory.chunkBytes)

  const look = async (): Promise<{ freeBytes: number }> => {
    lookedAtMs = performance.now()
    inventory = await takeInventory(folder, recipes)
    const { bavail, bsize, blocks } = await fs.statfs(folder)
    const freeBytes = bavail * bsize - Math.min(maxMarginBytes, blocks * bsize * marginShare)
    quota = quotaBytes ?? Math.floor(defaultShare * (Math.max(0, freeBytes) + usedBytes()))
    return { freeBytes }
  }

  const mayGo = (key: string, { pinned, used, isUnknown }: Held): boolean =>
    !isUnknown && !pinned.has(key) && !used.has(key)

  const candidates = async (): Promise<(Disk | ChunkGroup)[]> => {
    const held = await holders.held()
    const taken = await leases.taken()
    const free = inventory.copies.filter(({ key }) => mayGo(key, held) && !taken.has(key))
    const disks = free.map(({ key, folder: at, bytes, usedMs }) => ({ kind: 'disk' as const, key, folder: at, bytes, usedMs })) // biome-ignore format: one thought
    return [...disks, ...(await groupChunks(await options.store(), inventory.copies, taken))]
  }

  const removeDisk = async (key: string, at: string): Promise<boolean> => {
    await using aside = await makeTemporary(folder, path.basename(at))
    const isGone = await leases.remove(
      key,
      async () => mayGo(key, await holders.held()),
      async () => {
        failpoint('agent.evict.rename')
        await fs.rename(at, path.join(aside.path, 'copy'))
      },
    )
    failpoint('agent.evict.delete')
    if (isGone) options.evicted(key)
    return isGone
  }

  const evict = async (each: Disk | ChunkGroup, beforeMs: number): Promise<void> => {
    log.info('removed a cached image to free space', { kind: each.kind, name: each.key, count: each.bytes })
    if (each.kind === 'disk') return void (await removeDisk(each.key, each.folder))
    const store = await options.store()
    for (const digest of each.digests) {
      await store.deleteUnused(digest, beforeMs)
      failpoint('agent.evict.chunk')
    }
  }

  /** Whether there is room now. Somebody may begin to use what was to go: then it is looked at again. */
  const makeRoom = async (bytes: number, kinds: readonly Evictable['kind'][]): Promise<boolean> => {
    for (let tries = 1; ; tries++) {
      const beforeMs = Date.now()
      const { freeBytes } = await look()
      const { reservedBytes } = state
      const over = bytes + reservedBytes + Math.max(usedBytes() - quota, -freeBytes)
      if (over <= 0) return true
      const going = chooseEvictions(
        (await candidates()).filter(({ kind }) => kinds.includes(kind)),
        over,
      )
      if (!going || tries > triesAtMost) return false
      for (const each of going) await evict(each, beforeMs)
    }
  }

  const noRoom = async ({ title, diskBytes }: Need): Promise<Error> => {
    const { freeBytes } = await look()
    const going = (await candidates()).reduce((sum, { bytes }) => sum + bytes, 0)
    const figures = [
      `it needs ${sizeText(diskBytes)}`,
      `cached images use ${sizeText(usedBytes() + state.reservedBytes)} of ${sizeText(quota)}`,
      `of which ${sizeText(going)} can be removed`,
      `and ${sizeText(Math.max(0, freeBytes))} of the disk is free`,
    ]
    return new Error(
      `not enough space for ${title}: ${figures.join(', ')}; delete VMs, remove cached images (svc3 imagecache remove), or raise --image-quota of the agent`,
    )
  }

  const settle = (): Promise<void> =>
    inTurn(async () => {
      const isEnough = await makeRoom(0, everything)
      if (!isEnough && usedBytes() > quota) log.warn('cached images in use exceed the quota', { count: usedBytes() })
    })

  await fs.mkdir(folder, { recursive: true })
  await removeStale(folder)
  await look()
  return {
    take: (need) =>
      inTurn(async () => {
        // No disk goes for chunks, which only make the next image cheap.
        const keepsChunks = await makeRoom(need.diskBytes + need.chunkBytes, ['chunks'])
        if (!keepsChunks && !(await makeRoom(need.diskBytes, everything))) throw await noRoom(need)
        const bytes = need.diskBytes + (keepsChunks ? need.chunkBytes : 0)
        state.reservedBytes += bytes
        return {
          keepsChunks,
          [Symbol.dispose]: () => {
            state.reservedBytes -= bytes
          },
        }
      }),
    settle,
    drop: (key) =>
      inTurn(async () => {
        await look()
        const copy = inventory.copies.find((each) => each.key === key)
        const isGone = copy !== undefined && (await removeDisk(key, copy.folder))
        if (isGone) inventory = { ...inventory, copies: inventory.copies.filter((each) => each !== copy) }
        return isGone || copy === undefined
      }),
    used(key) {
      const copies = inventory.copies.map((copy) => (copy.key === key ? { ...copy, usedMs: Date.now() } : copy))
      inventory = { ...inventory, copies }
    },
    copies: () => inventory.copies,
    space() {
      // VMs fill the disk too: then there is less for images.
      if (performance.now() - lookedAtMs > lookEveryMs) void settle().catch(() => undefined)
      return { quotaBytes: quota, usedBytes: usedBytes() }
    },
  }
}
