// Images that VMs run on while they are fetched ("lazy" start): each is served on a socket from the fetch in progress.
//
// What is concurrent. One Arrival per image, however many VMs use it; its fetch is shared with all that need the image
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
import { orAborted, type RetryPolicy, retryPolicies } from '../../platform/retry.ts'
import { Arrival, type ArrivalOptions, type ArrivalState, type ArrivalUser } from './arrival.ts'
import type { ImageProvider } from './single-flight.ts'

export interface BeginOptions {
  readonly signal: AbortSignal
  /** The VM runs on the socket already, as after a restart of the agent: it is served even if the copy is complete. */
  readonly isRunning?: boolean
  /** The VM does not resume from the image's memory. Otherwise memory is fetched first, because QEMU reads all of it. */
  readonly isCold?: boolean
}

interface ArrivalsOptions extends Omit<ArrivalOptions, 'socket' | 'retry' | 'memoryFirst'> {
  /** The path must be short, and used by this agent only. */
  readonly socketFolder: string
  /** Tests only. */
  readonly retry?: RetryPolicy | undefined
}

export class Arrivals {
  readonly #options: ArrivalsOptions
  readonly #arrivals = new Map<string, Arrival>()

  constructor(options: ArrivalsOptions) {
    this.#options = options
  }

  /** Resolves when a VM can start: with the disk on a socket, or with the complete copy. */
  async begin(provider: ImageProvider, user: ArrivalUser, options: BeginOptions): Promise<BaseImage> {
    const { signal, isRunning = false, isCold = false } = options
    const needsMemory = !isCold && !isRunning
    const before = this.#find(user.uid)
    if (before && before.key !== provider.key) await this.leave(user.uid)
    const copy = this.#arrivals.has(provider.key) ? undefined : await provider.find()
    if (copy && !isRunning) return copy
    // Another VM may have started it during the await.
    const arrival = this.#arrivals.get(provider.key) ?? this.#start(provider, copy, needsMemory)
    arrival.users.set(user.uid, user)
    if (isRunning) arrival.isInUse = true
    try {
      const image = await orAborted(arrival.usable, signal)
      if (needsMemory && image.socket !== undefined && arrival.lacksMemory)
        return await this.#untilComplete(arrival, user.uid, signal)
      if (image.socket === undefined) await this.leave(user.uid)
      return image
    } catch (error) {
      await this.leave(user.uid)
      throw error
    }
  }

  /** Returns the image that a VM reads from a socket, and its progress. */
  of(uid: string): { readonly image: BaseImage; readonly state: ArrivalState } | undefined {
    const arrival = this.#find(uid)
    return arrival?.image && { image: arrival.image, state: arrival.state }
  }

  /** Resolves when no read of an image that this VM uses waits for missing content. Times out after some minutes. */
  async idle(uid: string, signal: AbortSignal): Promise<void> {
    await this.#find(uid)?.idle(signal)
  }

  async leave(uid: string): Promise<void> {
    const arrival = this.#find(uid)
    if (!arrival) return
    arrival.users.delete(uid)
    await this.#stopUnused(arrival)
  }

  list(): readonly { readonly key: string; readonly percent: number }[] {
    return [...this.#arrivals.values()].map(({ key, state: { bytes, of } }) => ({
      key,
      percent: Math.floor((100 * bytes) / Math.max(1, of)),
    }))
  }

  async stop(): Promise<void> {
    const all = [...this.#arrivals.values()]
    this.#arrivals.clear()
    await Promise.all(all.map((arrival) => arrival.stop()))
  }

  #find(uid: string): Arrival | undefined {
    return [...this.#arrivals.values()].find(({ users }) => users.has(uid))
  }

  #start(provider: ImageProvider, copy: BaseImage | undefined, memoryFirst: boolean): Arrival {
    const { key } = provider
    const { socketFolder, retry = retryPolicies.background } = this.#options
    const socket = path.join(socketFolder, createHash('sha256').update(key).digest('hex').slice(0, 20))
    const arrival = new Arrival(provider, { ...this.#options, socket, retry, memoryFirst })
    this.#arrivals.set(key, arrival)
    arrival.start(copy, () => {
      if (this.#arrivals.get(key) === arrival) this.#arrivals.delete(key)
    })
    return arrival
  }

  async #stopUnused(arrival: Arrival): Promise<void> {
    if (arrival.users.size + arrival.waitingUsers.size > 0 || this.#arrivals.get(arrival.key) !== arrival) return
    this.#arrivals.delete(arrival.key)
    await arrival.stop()
  }

  async #untilComplete(arrival: Arrival, uid: string, signal: AbortSignal): Promise<BaseImage> {
    arrival.waitingUsers.add(uid)
    arrival.users.delete(uid)
    try {
      return await orAborted(arrival.complete, signal)
    } finally {
      arrival.waitingUsers.delete(uid)
      await this.#stopUnused(arrival)
    }
  }
}

/** In /tmp, because paths of Unix sockets have at most 107 bytes and an agent's folder may be anywhere. */
export const socketFolderOf = (agentFolder: string): string =>
  path.join('/tmp', `svc3-disks-${createHash('sha256').update(path.resolve(agentFolder)).digest('hex').slice(0, 20)}`)
