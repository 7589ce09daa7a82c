// Images that VMs run on while they are still on their way: each is served on a socket of its own from the fetch that is under
// way, which is the same for all who wait. A fetch that fails is tried again for as long as a VM needs it, and its reads
// wait; a restarted agent serves again what its VMs were reading.
import { createHash } from 'node:crypto'
import { readSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type ImageFigures, longestBootOrder } from '../../api/nodes/agent.ts'
import type { BaseImage } from '../../drivers/driver.ts'
import { type NbdServer, type ServedDisk, serveDisk } from '../../images/nbd/server.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { makeTemporary } from '../../platform/temporary-folder.ts'
import { backOff, orAborted, type RetryPolicy, wait } from '../../rules/retry.ts'
import type { OpenedDisk } from './content.ts'
import type { ImageProvider } from './single-flight.ts'

/** A VM that reads from it. */
export interface ArrivalUser {
  /** Its folder's uid. */
  readonly uid: string
  /** How far it is has changed. */
  changed(): void
  /** It is whole: the VM reads from its file when this is over. */
  arrived(image: BaseImage): Promise<void>
}

export interface ArrivalState {
  readonly bytes: number
  readonly of: number
  readonly bytesPerSecond: number
  /** Why nothing comes. */
  readonly waiting?: string
}

export interface Arrivals {
  /** Where a VM can start on it: its disk on a socket, or whole, where that came first or has to be. */
  begin(provider: ImageProvider, user: ArrivalUser, options: BeginOptions): Promise<BaseImage>
  /** What a VM runs on that has not arrived. */
  of(uid: string): { readonly image: BaseImage; readonly state: ArrivalState } | undefined
  /** Until no read waits for what has not come; at once where the VM reads from a file. Throws where none comes for long. */
  quiet(uid: string, signal: AbortSignal): Promise<void>
  /** The VM is gone. With the last one that reads it, the fetch ends, too. */
  leave(uid: string): Promise<void>
  /** Keys of all that are on their way, with how much of each is here. */
  list(): readonly { readonly key: string; readonly percent: number }[]
  stop(): Promise<void>
}

export interface BeginOptions {
  readonly signal: AbortSignal
  /** The VM runs on it already, whatever is here by now: it is served in any case. */
  readonly isRunning?: boolean
  /** The VM does not need the memory that the image may carry. For who does, that comes first: QEMU reads it to its end. */
  readonly isCold?: boolean
}

interface ArrivalsOptions {
  /** Of the images. */
  readonly folder: string
  /** Short, and of this agent alone. */
  readonly socketFolder: string
  /** Fetches it, as for all who wait: until it is whole. */
  fetch(provider: ImageProvider, options: FetchOptions): Promise<BaseImage>
  readonly bootOrder?: BootOrder | undefined
  /** Where reads and their waits are counted. */
  readonly figures: Pick<ImageFigures, 'reads' | 'readWaitMs'>
  readonly log: Log
  /** Tests only. */
  readonly retry?: RetryPolicy | undefined
}

/** What boots of the image with this content read first, by places of chunks. With `read`, that of one more. */
export type BootOrder = (
  content: string,
  read: readonly number[] | undefined,
  signal: AbortSignal,
) => Promise<readonly number[]>

interface FetchOptions {
  readonly signal: AbortSignal
  waits(reason: string): void
  opened(disk: OpenedDisk): Promise<void>
  readonly memoryFirst: boolean
}

const patience: RetryPolicy = { attempts: Infinity, firstDelayMs: 500, maxDelayMs: 15_000, maxRetryAfterMs: 0 }
/** Of bytes that came within this time. */
const rateMs = 5_000
/** Progress is a write to the server's database: it goes in steps. */
const percentStep = 5
/** What is read within this time of the start is the boot. */
const bootMs = 30_000
const noteMs = 5_000
/**
 * What was written lately is in the host's memory, and the way through a thread and back costs more than the read itself. One
 * that takes longer was of the disk: then threads read for a while, and the agent has other things to do.
 */
const quickBytes = 256 * 1_024
const quickMs = 2
const slowMs = 1_000
const quietMs = 10 * 60_000
const tellMs = 5_000

export function createArrivals(options: ArrivalsOptions): Arrivals {
  const { folder, socketFolder, fetch, bootOrder, figures, log, retry = patience } = options
  const arrivals = new Map<string, Arrival>()
  const find = (uid: string): Arrival | undefined => [...arrivals.values()].find(({ users }) => users.has(uid))

  const leave = async (uid: string): Promise<void> => {
    const arrival = find(uid)
    if (!arrival) return
    arrival.users.delete(uid)
    await endUnused(arrival)
  }

  const endUnused = async (arrival: Arrival): Promise<void> => {
    if (arrival.users.size + arrival.waiting.size > 0 || arrivals.get(arrival.key) !== arrival) return
    arrivals.delete(arrival.key)
    await arrival.stop()
  }

  /** For who needs memory that comes last. */
  const untilWhole = async (arrival: Arrival, uid: string, signal: AbortSignal): Promise<BaseImage> => {
    arrival.waiting.add(uid)
    arrival.users.delete(uid)
    try {
      return await orAborted(arrival.whole, signal)
    } finally {
      arrival.waiting.delete(uid)
      await endUnused(arrival)
    }
  }

  return {
    async begin(provider, user, { signal, isRunning = false, isCold = false }) {
      const needsMemory = !isCold && !isRunning
      const known = find(user.uid)
      if (known && known.key !== provider.key) await leave(user.uid)
      const whole = arrivals.has(provider.key) ? undefined : await provider.find()
      if (whole && !isRunning) return whole
      // Another VM may have begun it meanwhile.
      let arrival = arrivals.get(provider.key)
      if (!arrival) {
        const socket = path.join(socketFolder, createHash('sha256').update(provider.key).digest('hex').slice(0, 20))
        const parts = { folder, socket, fetch, bootOrder, figures, log, retry, memoryFirst: needsMemory }
        arrival = new Arrival(provider, parts)
        arrivals.set(provider.key, arrival)
        arrival.start(whole, (over) => {
          if (arrivals.get(over.key) === over) arrivals.delete(over.key)
        })
      }
      arrival.users.set(user.uid, user)
      if (isRunning) arrival.mustServe = true
      try {
        const image = await orAborted(arrival.usable, signal)
        if (needsMemory && image.socket !== undefined && arrival.lacksMemory)
          return await untilWhole(arrival, user.uid, signal)
        // Whole before anybody could read from it.
        if (image.socket === undefined) await leave(user.uid)
        return image
      } catch (error) {
        await leave(user.uid)
        throw error
      }
    },
    of(uid) {
      const arrival = find(uid)
      return arrival?.image && { image: arrival.image, state: arrival.state() }
    },
    quiet: async (uid, signal) => find(uid)?.quiet(signal),
    leave,
    list: () =>
      [...arrivals.values()].map((arrival) => {
        const { bytes, of } = arrival.state()
        return { key: arrival.key, percent: Math.floor((100 * bytes) / Math.max(1, of)) }
      }),
    async stop() {
      const all = [...arrivals.values()]
      arrivals.clear()
      await Promise.all(all.map((arrival) => arrival.stop()))
    },
  }
}

/** Unix sockets have paths of at most 107 bytes, and an agent's folder may be anywhere: hence a name in /tmp. */
export const socketFolderOf = (agentFolder: string): string =>
  path.join('/tmp', `svc3-disks-${createHash('sha256').update(path.resolve(agentFolder)).digest('hex').slice(0, 20)}`)

interface ArrivalParts extends Pick<ArrivalsOptions, 'folder' | 'fetch' | 'bootOrder' | 'figures' | 'log'> {
  readonly socket: string
  readonly retry: RetryPolicy
  /** Whoever it was begun for goes on from memory, if there is any. */
  readonly memoryFirst: boolean
}

/** What reads are answered from, for now. */
interface Shown {
  readonly file: fs.FileHandle
  has(offset: number, length: number): boolean
  ready(offset: number, length: number, signal: AbortSignal): Promise<boolean>
}

class Arrival implements ServedDisk {
  readonly users = new Map<string, ArrivalUser>()
  readonly key: string
  bytes = 0
  /** VMs that need it whole. */
  readonly waiting = new Set<string>()
  /** There is memory, and it comes after the disk. */
  lacksMemory = false
  /** A VM runs on it already. */
  mustServe = false
  image: BaseImage | undefined
  readonly #provider: ImageProvider
  readonly #parts: ArrivalParts
  readonly #usable = Promise.withResolvers<BaseImage>()
  readonly #whole = Promise.withResolvers<BaseImage>()
  readonly #stopping = new AbortController()
  readonly #resources = new AsyncDisposableStack()
  #slowUntilMs = 0
  /** Reads that wait for what has not come. */
  #waiters = 0
  #quiet = Promise.withResolvers<void>()
  #shown = Promise.withResolvers<Shown>()
  #current: Shown | undefined
  #server: NbdServer | undefined
  #fill: OpenedDisk['fill'] | undefined
  #file: fs.FileHandle | undefined
  #work: Promise<void> | undefined
  #progress: () => { readonly bytes: number; readonly of: number } = () => ({ bytes: 0, of: 0 })
  #waiting: string | undefined
  #toldStep = -1
  #toldAtMs = 0
  #past: { readonly atMs: number; readonly bytes: number }[] = []

  constructor(provider: ImageProvider, parts: ArrivalParts) {
    this.key = provider.key
    this.#provider = provider
    this.#parts = parts
    this.#usable.promise.catch(() => undefined)
    this.#whole.promise.catch(() => undefined)
  }

  get usable(): Promise<BaseImage> {
    return this.#usable.promise
  }

  get whole(): Promise<BaseImage> {
    return this.#whole.promise
  }

  /** `whole`: it is here already, and a VM has yet to hear of it. */
  start(whole: BaseImage | undefined, over: (arrival: Arrival) => void): void {
    const timer = setInterval(() => this.#tick(), 1_000)
    this.#resources.defer(() => clearInterval(timer))
    this.#work = this.#run(whole, over)
      .catch((error: unknown) => this.#reject(error))
      .finally(() => clearInterval(timer))
  }

  state(): ArrivalState {
    const { bytes, of } = this.#progress()
    const [first] = this.#past
    const seconds = first ? (performance.now() - first.atMs) / 1_000 : 0
    const bytesPerSecond = first && seconds > 0 ? Math.max(0, Math.round((bytes - first.bytes) / seconds)) : 0
    return { bytes, of, bytesPerSecond, ...(this.#waiting !== undefined && { waiting: this.#waiting }) }
  }

  async read(target: Buffer, offset: number, signal: AbortSignal): Promise<void> {
    const { figures } = this.#parts
    figures.reads += 1
    // Most reads are of what is there: nothing may come between them and the file.
    const current = this.#current
    if (current?.has(offset, target.length)) {
      if (this.#readAtOnce(current.file, target, offset)) return
      const isRead = readWhole(current.file, target, offset).then(
        () => true,
        () => false,
      )
      if (await isRead) return
    }
    const startMs = performance.now()
    this.#waiters += 1
    try {
      await this.#readLater(target, offset, signal)
    } finally {
      figures.readWaitMs += Math.round(performance.now() - startMs)
      this.#waiters -= 1
      if (this.#waiters === 0) {
        this.#quiet.resolve()
        this.#quiet = Promise.withResolvers()
      }
    }
  }

  async quiet(signal: AbortSignal): Promise<void> {
    if (this.#waiters === 0) return
    const late = AbortSignal.timeout(quietMs)
    await orAborted(this.#quiet.promise, AbortSignal.any([signal, late])).catch((error: unknown) => {
      if (!late.aborted || signal.aborted) throw error
      throw new Error('the guest waits for a part of its image that does not come; try again when it has')
    })
  }

  /** False where it has to be read in another thread: it may take long. */
  #readAtOnce(file: fs.FileHandle, target: Buffer, offset: number): boolean {
    const startMs = performance.now()
    if (target.length > quickBytes || startMs < this.#slowUntilMs) return false
    try {
      return readSync(file.fd, target, 0, target.length, offset) === target.length
    } catch {
      return false
    } finally {
      if (performance.now() - startMs > quickMs) this.#slowUntilMs = startMs + slowMs
    }
  }

  async #readLater(target: Buffer, offset: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      const shown = this.#shown
      const { file, ready } = await orAborted(shown.promise, signal)
      try {
        await ready(offset, target.length, signal)
      } catch (error) {
        // The fetch has failed and is tried again; what is read then comes from the next one.
        if (signal.aborted) throw error
        if (shown === this.#shown) this.#shown = Promise.withResolvers()
        continue
      }
      try {
        return await readWhole(file, target, offset)
      } catch (error) {
        // It was closed: another is shown.
        if (shown === this.#shown) throw error
      }
    }
  }

  async stop(): Promise<void> {
    this.#fill?.forgetReaders()
    this.#stopping.abort(new Error('the image is no longer used'))
    this.#reject(this.#stopping.signal.reason)
    await this.#work
    await this.#server?.stop()
    await this.#file?.close()
    await this.#resources.disposeAsync().catch(() => undefined)
  }

  #reject(error: unknown): void {
    this.#usable.reject(error)
    this.#whole.reject(error)
  }

  async #run(found: BaseImage | undefined, over: (arrival: Arrival) => void): Promise<void> {
    const whole = found ?? (await this.#fetched())
    if (!whole) return
    if (found || this.#server) await this.#showWhole(whole, found !== undefined)
    this.#usable.resolve(whole)
    this.#whole.resolve(whole)
    if (!this.#server) return
    // Another may come while one is told.
    for (const user of this.users.values()) {
      await this.#tell(user, whole)
      this.users.delete(user.uid)
      user.changed()
    }
    // From here on, whoever comes finds the copy. Not waited for: the end waits for this work.
    over(this)
    void this.stop()
  }

  async #fetched(): Promise<BaseImage | undefined> {
    const { fetch, log, retry } = this.#parts
    const { signal } = this.#stopping
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        return await fetch(this.#provider, {
          signal,
          memoryFirst: this.#parts.memoryFirst && !this.#server,
          waits: (reason) => this.#wait(reason),
          opened: async (disk) => {
            attempt = 1
            this.#wait(undefined)
            await this.#show(disk)
          },
        })
      } catch (error) {
        if (signal.aborted) return undefined
        // Before anything runs on it, whoever wants to is told.
        if (!this.#server && !this.mustServe) throw error
        this.#wait(reasonOf(error))
        log.warn('an image that a VM runs on does not arrive; trying again', {
          name: this.#provider.title,
          problem: reasonOf(error),
          attempt,
        })
        await wait(backOff(Math.min(attempt, 8), retry, Math.random), signal).catch(() => undefined)
      }
    }
    return undefined
  }

  #wait(reason: string | undefined): void {
    if (this.#waiting === reason) return
    this.#waiting = reason
    for (const { changed } of this.users.values()) changed()
  }

  #tick(): void {
    const { bytes } = this.#progress()
    const atMs = performance.now()
    const before = this.#past.at(-1)
    this.#past.push({ atMs, bytes })
    while (this.#past.length > 1 && atMs - (this.#past[0]?.atMs ?? 0) > rateMs) this.#past.shift()
    if (before?.bytes === bytes) return
    this.#waiting = undefined
    const step = Math.floor((100 * bytes) / Math.max(1, this.#progress().of) / percentStep)
    if (step === this.#toldStep && atMs - this.#toldAtMs < tellMs) return
    this.#toldStep = step
    this.#toldAtMs = atMs
    for (const { changed } of this.users.values()) changed()
  }

  /** From now on, reads are answered from what is being fetched. */
  async #show({ fill, file: name, image, lacksMemory }: OpenedDisk): Promise<void> {
    // Another fetch was there first, and memory comes last in it.
    if (lacksMemory && this.#parts.memoryFirst && !this.mustServe && !this.#server) return
    this.lacksMemory = lacksMemory
    const file = await fs.open(name, 'r')
    fill.expectReaders((error) => this.#wait(error && reasonOf(error)))
    this.#fill = fill
    void this.#follow(fill)
    this.#progress = () => fill.progress
    await this.#replace({ file, has: (...range) => fill.has(...range), ready: (...range) => fill.ready(...range) })
    if (!this.#server) await this.#serve(await this.#kept(image))
  }

  /** Fetches what the last boots read, and tells what this one did. Best effort: the guest asks for what it needs anyway. */
  async #follow(fill: OpenedDisk['fill']): Promise<void> {
    const { bootOrder, log } = this.#parts
    if (!bootOrder) return
    const { signal } = this.#stopping
    try {
      fill.expect(await bootOrder(this.key, undefined, signal))
      await wait(bootMs, signal).catch(() => undefined)
      const read = fill.firstRead(longestBootOrder)
      if (read.length > 0) await bootOrder(this.key, read, AbortSignal.timeout(noteMs))
    } catch (error) {
      if (!signal.aborted) log.debug('the boot order of an image is not known', { problem: reasonOf(error) })
    }
  }

  async #showWhole(image: BaseImage, isNew: boolean): Promise<void> {
    const file = await fs.open(image.disk, 'r')
    await this.#replace({ file, has: () => true, ready: async () => true })
    if (isNew) await this.#serve(image)
  }

  /** The file of before is deleted, and takes its room as long as it is open. */
  async #replace(shown: Shown): Promise<void> {
    const [before, file] = [this.#shown, this.#file]
    this.#current = shown
    this.#shown = Promise.withResolvers()
    this.#shown.resolve(shown)
    before.resolve(shown)
    this.#file = shown.file
    await file?.close()
  }

  async #serve(image: BaseImage): Promise<void> {
    this.bytes = image.virtualSizeBytes
    this.#server = await serveDisk(this.#parts.socket, this)
    this.image = { ...image, socket: this.#parts.socket }
    this.#usable.resolve(this.image)
  }

  /** Where they lie now, they will not stay: but QEMU may yet read them. */
  async #kept({ boot, memory, ...rest }: BaseImage): Promise<BaseImage> {
    const temporary = await makeTemporary(this.#parts.folder, 'arriving')
    this.#resources.use(temporary)
    const keep = async (file: string): Promise<string> => {
      const target = path.join(temporary.path, path.basename(file))
      await fs.link(file, target)
      return target
    }
    const kernel = boot.kind === 'kernel' && {
      kernel: await keep(boot.kernel),
      ...(boot.initrd !== undefined && { initrd: await keep(boot.initrd) }),
    }
    return {
      ...rest,
      boot: { ...boot, ...kernel },
      ...(memory && { memory: { ...memory, file: await keep(memory.file) } }),
    }
  }

  /** Until the VM reads from the file, however often that takes. */
  async #tell(user: ArrivalUser, whole: BaseImage): Promise<void> {
    const { log, retry } = this.#parts
    const { signal } = this.#stopping
    for (let attempt = 1; !signal.aborted && this.users.has(user.uid); attempt++) {
      try {
        return await orAborted(user.arrived(whole), signal)
      } catch (error) {
        log.warn('a VM does not read from its image on the disk yet; trying again', {
          problem: reasonOf(error),
          attempt,
        })
        await wait(backOff(Math.min(attempt, 8), retry, Math.random), signal).catch(() => undefined)
      }
    }
  }
}

async function readWhole(file: fs.FileHandle, target: Buffer, offset: number): Promise<void> {
  for (let done = 0; done < target.length; ) {
    const { bytesRead } = await file.read(target, done, target.length - done, offset + done)
    if (bytesRead === 0) throw new Error('the disk is shorter than it was')
    done += bytesRead
  }
}
