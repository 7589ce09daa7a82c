// Images that VMs run on while they are fetched ("lazy" start): each is served on a socket from the fetch in progress.
//
// What is concurrent. One Arrival per image, however many VMs use it; its fetch is shared with everybody who needs the image
// (single-flight.ts). Reads of guests, the fetch and the retries of a failed fetch run side by side.
//
// What may die when. A failed fetch is retried as long as a VM runs on the image, and reads wait for the next try. An agent
// that is killed leaves its guests blocked in their reads; the next agent serves the image again (`isRunning`).
//
// What is promised. A guest never reads bytes that were not checked against the image's manifest. When the image is complete,
// every VM is moved to the copy before the socket goes away. The last VM that leaves ends the fetch.
import { createHash } from 'node:crypto'
import path from 'node:path'
import type { BaseImage } from '../../drivers/driver.ts'
import { orAborted, type RetryPolicy } from '../../rules/retry.ts'
import { Arrival, type ArrivalOptions, type ArrivalState, type ArrivalUser } from './arrival.ts'
import type { ImageProvider } from './single-flight.ts'

export interface Arrivals {
  /** Resolves when a VM can start: with the disk on a socket, or with the complete copy. */
  begin(provider: ImageProvider, user: ArrivalUser, options: BeginOptions): Promise<BaseImage>
  /** The incomplete image that a VM runs on. */
  of(uid: string): { readonly image: BaseImage; readonly state: ArrivalState } | undefined
  /** Resolves when no read of an image that this VM uses waits for missing content. Times out after some minutes. */
  idle(uid: string, signal: AbortSignal): Promise<void>
  leave(uid: string): Promise<void>
  list(): readonly { readonly key: string; readonly percent: number }[]
  stop(): Promise<void>
}

export interface BeginOptions {
  readonly signal: AbortSignal
  /** The VM runs on the socket already, as after a restart of the agent: it is served even if the copy is complete. */
  readonly isRunning?: boolean
  /** The VM does not resume from the image's memory. Otherwise memory is fetched first, because QEMU reads all of it. */
  readonly isCold?: boolean
}

interface ArrivalsOptions extends Omit<ArrivalOptions, 'socket' | 'retry' | 'memoryFirst'> {
  /** Short, and used by this agent only. */
  readonly socketFolder: string
  /** Tests only. */
  readonly retry?: RetryPolicy | undefined
}

const defaultRetry: RetryPolicy = { attempts: Infinity, firstDelayMs: 500, maxDelayMs: 15_000, maxRetryAfterMs: 0 }

export function createArrivals(options: ArrivalsOptions): Arrivals {
  const { socketFolder, retry = defaultRetry } = options
  const arrivals = new Map<string, Arrival>()
  const find = (uid: string): Arrival | undefined => [...arrivals.values()].find(({ users }) => users.has(uid))

  const stopUnused = async (arrival: Arrival): Promise<void> => {
    if (arrival.users.size + arrival.waitingUsers.size > 0 || arrivals.get(arrival.key) !== arrival) return
    arrivals.delete(arrival.key)
    await arrival.stop()
  }

  const leave = async (uid: string): Promise<void> => {
    const arrival = find(uid)
    if (!arrival) return
    arrival.users.delete(uid)
    await stopUnused(arrival)
  }

  const untilComplete = async (arrival: Arrival, uid: string, signal: AbortSignal): Promise<BaseImage> => {
    arrival.waitingUsers.add(uid)
    arrival.users.delete(uid)
    try {
      return await orAborted(arrival.complete, signal)
    } finally {
      arrival.waitingUsers.delete(uid)
      await stopUnused(arrival)
    }
  }

  const startArrival = (provider: ImageProvider, copy: BaseImage | undefined, memoryFirst: boolean): Arrival => {
    const socket = path.join(socketFolder, createHash('sha256').update(provider.key).digest('hex').slice(0, 20))
    const arrival = new Arrival(provider, { ...options, socket, retry, memoryFirst })
    arrivals.set(provider.key, arrival)
    arrival.start(copy, () => {
      if (arrivals.get(provider.key) === arrival) arrivals.delete(provider.key)
    })
    return arrival
  }

  return {
    async begin(provider, user, { signal, isRunning = false, isCold = false }) {
      const needsMemory = !isCold && !isRunning
      const before = find(user.uid)
      if (before && before.key !== provider.key) await leave(user.uid)
      const copy = arrivals.has(provider.key) ? undefined : await provider.find()
      if (copy && !isRunning) return copy
      // Another VM may have started it during the await.
      const arrival = arrivals.get(provider.key) ?? startArrival(provider, copy, needsMemory)
      arrival.users.set(user.uid, user)
      if (isRunning) arrival.isInUse = true
      try {
        const image = await orAborted(arrival.usable, signal)
        if (needsMemory && image.socket !== undefined && arrival.lacksMemory)
          return await untilComplete(arrival, user.uid, signal)
        if (image.socket === undefined) await leave(user.uid)
        return image
      } catch (error) {
        await leave(user.uid)
        throw error
      }
    },
    of(uid) {
      const arrival = find(uid)
      return arrival?.image && { image: arrival.image, state: arrival.state }
    },
    idle: async (uid, signal) => find(uid)?.idle(signal),
    leave,
    list: () =>
      [...arrivals.values()].map(({ key, state: { bytes, of } }) => ({
        key,
        percent: Math.floor((100 * bytes) / Math.max(1, of)),
      })),
    async stop() {
      const all = [...arrivals.values()]
      arrivals.clear()
      await Promise.all(all.map((arrival) => arrival.stop()))
    },
  }
}

/** In /tmp, because paths of Unix sockets have at most 107 bytes and an agent's folder may be anywhere. */
export const socketFolderOf = (agentFolder: string): string =>
  path.join('/tmp', `svc3-disks-${createHash('sha256').update(path.resolve(agentFolder)).digest('hex').slice(0, 20)}`)
