// One image that VMs run on while it is fetched.
import fs from 'node:fs/promises'
import path from 'node:path'
import { longestBootOrder } from '../../api/nodes/agent.ts'
import type { BaseImage } from '../../drivers/driver.ts'
import { type NbdServer, serveDisk } from '../../images/nbd/server.ts'
import type { Log } from '../../platform/log.ts'
import type { Progress } from '../../platform/parallel.ts'
import { reasonOf } from '../../platform/reason.ts'
import { orAborted, type RetryPolicy, retry, unlessAborted, wait } from '../../platform/retry.ts'
import { makeTemporary } from '../../platform/temporary-folder.ts'
import { ArrivingDisk, openCopy, type ReadFigures } from './arriving-disk.ts'
import type { FetchOptions, OpenedDisk } from './content.ts'
import type { ImageProvider } from './single-flight.ts'

/** A VM that reads from an arriving image. */
export interface ArrivalUser {
  /** The uid of the VM's folder. */
  readonly uid: string
  /** Called when progress, or what delays it, has changed. */
  changed(): void
  /** Moves the VM to the complete copy; resolves when it reads from there. */
  arrived(image: BaseImage): Promise<void>
}

export interface ArrivalState {
  readonly bytes: number
  readonly of: number
  readonly bytesPerSecond: number
  /** Why there is no progress. */
  readonly waiting?: string
}

/** Returns positions of the chunks that boots of an image read first, after recording `read`, those of another boot. */
export type BootOrder = (
  content: string,
  read: readonly number[] | undefined,
  signal: AbortSignal,
) => Promise<readonly number[]>

export interface ArrivalOptions {
  readonly folder: string
  readonly socket: string
  /** Resolves when the copy is complete. */
  fetch(provider: ImageProvider, options: FetchOptions): Promise<BaseImage>
  readonly bootOrder?: BootOrder | undefined
  readonly figures: ReadFigures
  readonly log: Log
  readonly retry: RetryPolicy
  /** Fetch the memory before the disk, for a VM that resumes from it. */
  readonly memoryFirst: boolean
}

interface Served {
  readonly disk: ArrivingDisk
  readonly server: NbdServer
  readonly image: BaseImage
}

/** Reads count as those of a boot for this long after the incomplete disk can be read. */
const bootMs = 30_000
const bootOrderTimeoutMs = 5_000

export class Arrival {
  readonly key: string
  readonly users = new Map<string, ArrivalUser>()
  /** VMs that cannot start before the image is complete. */
  readonly waitingUsers = new Set<string>()
  /** The image has memory, which comes after the disk. */
  lacksMemory = false
  /** A VM runs on the image already: failures to fetch it are retried, not reported. */
  isInUse = false
  readonly #provider: ImageProvider
  readonly #options: ArrivalOptions
  readonly #usable = Promise.withResolvers<BaseImage>()
  readonly #complete = Promise.withResolvers<BaseImage>()
  readonly #stopping = new AbortController()
  readonly #resources = new AsyncDisposableStack()
  readonly #meter = new ProgressMeter()
  #served: Served | undefined
  #fill: OpenedDisk['fill'] | undefined
  #problem: string | undefined
  #work: Promise<void> | undefined

  constructor(provider: ImageProvider, options: ArrivalOptions) {
    this.key = provider.key
    this.#provider = provider
    this.#options = options
    this.#usable.promise.catch(() => undefined)
    this.#complete.promise.catch(() => undefined)
  }

  /** The image on a socket, or the complete copy if that comes first. */
  get usable(): Promise<BaseImage> {
    return this.#usable.promise
  }

  get complete(): Promise<BaseImage> {
    return this.#complete.promise
  }

  get image(): BaseImage | undefined {
    return this.#served?.image
  }

  get state(): ArrivalState {
    return {
      ...this.#progress,
      bytesPerSecond: this.#meter.bytesPerSecond,
      ...(this.#problem !== undefined && { waiting: this.#problem }),
    }
  }

  get #progress(): Progress {
    return this.#fill?.progress ?? { bytes: 0, of: 0 }
  }

  /** `copy` is complete, but a VM still reads from the socket. `ended` is called once all VMs have moved to it. */
  start(copy: BaseImage | undefined, ended: () => void): void {
    const timer = setInterval(() => this.#tick(), 1_000)
    this.#resources.defer(() => clearInterval(timer))
    this.#work = this.#run(copy, ended)
      .catch((error: unknown) => this.#reject(error))
      .finally(() => clearInterval(timer))
  }

  async idle(signal: AbortSignal): Promise<void> {
    await this.#served?.disk.idle(signal)
  }

  async stop(): Promise<void> {
    this.#fill?.forgetReaders()
    this.#stopping.abort(new Error('the image is no longer used'))
    this.#reject(this.#stopping.signal.reason)
    await this.#work
    await this.#served?.server.stop()
    await this.#served?.disk.close()
    await this.#resources.disposeAsync().catch(() => undefined)
  }

  #reject(error: unknown): void {
    this.#usable.reject(error)
    this.#complete.reject(error)
  }

  async #run(copy: BaseImage | undefined, ended: () => void): Promise<void> {
    const whole = copy ?? (await this.#fetch())
    const content = this.#served || copy ? await openCopy(whole.disk) : undefined
    if (content && this.#served) await this.#served.disk.replace(content)
    else if (content) await this.#serve(new ArrivingDisk(whole.virtualSizeBytes, content, this.#options.figures), whole)
    this.#usable.resolve(whole)
    this.#complete.resolve(whole)
    if (!this.#served) return
    // Users may be added during the loop.
    for (const user of this.users.values()) {
      await this.#moveToCopy(user, whole)
      this.users.delete(user.uid)
      user.changed()
    }
    ended()
    // Not awaited, because stop() awaits this function.
    void this.stop()
  }

  async #fetch(): Promise<BaseImage> {
    const { fetch, log, memoryFirst, retry: policy } = this.#options
    const { signal } = this.#stopping
    const work = (progressed: () => void): Promise<BaseImage> =>
      fetch(this.#provider, {
        signal,
        memoryFirst: memoryFirst && !this.#served,
        onWait: (reason) => this.#setProblem(reason),
        opened: async (disk) => {
          progressed()
          this.#setProblem(undefined)
          await this.#readFrom(disk)
        },
      })
    return retry(work, {
      policy,
      signal,
      isRetriable: () => this.#served !== undefined || this.isInUse,
      onWait: ({ error, attempt }) => {
        const problem = reasonOf(error)
        this.#setProblem(problem)
        const name = this.#provider.title
        log.warn('failed to fetch an image that a VM runs on; trying again', { name, problem, attempt })
      },
    })
  }

  async #readFrom({ fill, file: name, image, lacksMemory }: OpenedDisk): Promise<void> {
    // Another fetch of the same image came first and brings the memory last; this VM waits until it is complete.
    if (lacksMemory && this.#options.memoryFirst && !this.isInUse && !this.#served) return
    this.lacksMemory = lacksMemory
    const content = {
      file: await fs.open(name, 'r'),
      has: fill.has.bind(fill),
      ready: fill.ready.bind(fill),
    }
    fill.expectReaders((error) => this.#setProblem(error && reasonOf(error)))
    this.#fill = fill
    void this.#followBoot(fill)
    if (this.#served) return this.#served.disk.replace(content)
    const disk = new ArrivingDisk(image.virtualSizeBytes, content, this.#options.figures)
    await this.#serve(disk, await this.#linkFiles(image))
  }

  async #serve(disk: ArrivingDisk, image: BaseImage): Promise<void> {
    const { socket } = this.#options
    this.#served = { disk, server: await serveDisk(socket, disk), image: { ...image, socket } }
    this.#usable.resolve(this.#served.image)
  }

  /** Fetches first what earlier boots read, and records what this one reads. Best effort: the order only saves time. */
  async #followBoot(fill: OpenedDisk['fill']): Promise<void> {
    const { bootOrder, log } = this.#options
    if (!bootOrder) return
    const { signal } = this.#stopping
    try {
      fill.expect(await bootOrder(this.key, undefined, signal))
      await wait(bootMs, signal).catch(() => undefined)
      const read = fill.firstRead(longestBootOrder)
      if (read.length > 0) await bootOrder(this.key, read, AbortSignal.timeout(bootOrderTimeoutMs))
    } catch (error) {
      if (!signal.aborted) log.debug('the boot order of an image is unknown', { problem: reasonOf(error) })
    }
  }

  /** Kernel, initrd and memory lie in the temporary folder of the fetch; links keep them while QEMU may read them. */
  async #linkFiles({ boot, memory, ...rest }: BaseImage): Promise<BaseImage> {
    const temporary = await makeTemporary(this.#options.folder, 'arriving')
    this.#resources.use(temporary)
    const link = async (file: string): Promise<string> => {
      const target = path.join(temporary.path, path.basename(file))
      await fs.link(file, target)
      return target
    }
    const kernel = boot.kind === 'kernel' && {
      kernel: await link(boot.kernel),
      ...(boot.initrd !== undefined && { initrd: await link(boot.initrd) }),
    }
    return {
      ...rest,
      boot: { ...boot, ...kernel },
      ...(memory && { memory: { ...memory, file: await link(memory.file) } }),
    }
  }

  /** Retries until the VM reads from the copy, or no longer uses the image. */
  async #moveToCopy(user: ArrivalUser, whole: BaseImage): Promise<void> {
    const { log, retry: policy } = this.#options
    const { signal } = this.#stopping
    const work = async (): Promise<void> => {
      if (this.users.has(user.uid)) await orAborted(user.arrived(whole), signal)
    }
    await retry(work, {
      policy,
      signal,
      isRetriable: () => true,
      onWait: ({ error, attempt }) => {
        const problem = reasonOf(error)
        log.warn('a VM could not be moved to the complete copy of its image; trying again', { problem, attempt })
      },
    }).catch(unlessAborted(signal))
  }

  #setProblem(problem: string | undefined): void {
    if (this.#problem === problem) return
    this.#problem = problem
    this.#notify()
  }

  #tick(): void {
    if (!this.#meter.sample(this.#progress)) return
    this.#problem = undefined
    this.#notify()
  }

  #notify(): void {
    for (const { changed } of this.users.values()) changed()
  }
}

/** Each report of progress is a write to the server's database. */
const percentStep = 5
const reportEveryMs = 5_000

class ProgressMeter {
  #reported = { atMs: performance.now(), bytes: 0, step: -1 }
  #bytesPerSecond = 0

  /** The rate between the last two reports. */
  get bytesPerSecond(): number {
    return this.#bytesPerSecond
  }

  /** Whether there is progress to report. */
  sample({ bytes, of }: Progress): boolean {
    const { atMs, bytes: before, step: lastStep } = this.#reported
    const step = Math.floor((100 * bytes) / Math.max(1, of) / percentStep)
    const nowMs = performance.now()
    if (step === lastStep && nowMs - atMs < reportEveryMs) return false
    this.#reported = { atMs: nowMs, bytes, step }
    this.#bytesPerSecond = Math.max(0, Math.round((1_000 * (bytes - before)) / (nowMs - atMs)))
    return bytes !== before
  }
}
