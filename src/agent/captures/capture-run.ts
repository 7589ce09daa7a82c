// One capture, from the frozen VM to its end: packed, then delivered to the server or pushed to a registry.
import { ApiError } from '../../api/errors.ts'
import type { DesiredCapture } from '../../api/nodes/captures.ts'
import type { Driver } from '../../drivers/driver.ts'
import { digestPattern } from '../../images/format/format.ts'
import { hasAllContent } from '../../images/pack/stored-manifests.ts'
import { RegistryError } from '../../oci/artifact/errors.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { createReporter, type Reporter } from '../../platform/reporter.ts'
import { type RetryPolicy, retryDelay, type wait } from '../../platform/retry.ts'
import type { NodeContent } from '../images/content-source.ts'
import type { Images } from '../images/images.ts'
import { isRetriable } from '../link/connection.ts'
import { deliver } from './deliver.ts'
import { Canceled, type Packer } from './pack.ts'
import { type PushTarget, push, type SentEarly, startSending } from './push.ts'
import type { CaptureProgress, CaptureServer } from './server.ts'
import type { CaptureState, CaptureStates, StateIn } from './states.ts'

export interface CaptureContext {
  readonly node: string
  readonly driver: Driver
  readonly images: Images
  readonly packer: Packer
  content(): Promise<NodeContent>
  readonly states: CaptureStates
  readonly server: CaptureServer
  readonly log: Log
  readonly retry: RetryPolicy
  readonly registryRetry: RetryPolicy | undefined
  readonly stopping: AbortSignal
  /** A wait that ends early when the server is back. */
  readonly pause: typeof wait
  /** Runs the packing of one capture at a time, because each uses all cores. */
  inTurn(work: () => Promise<void>): Promise<void>
  /** Whether the newest desired state of the VM names the capture. */
  isDesired(state: CaptureState): boolean
  ended(run: CaptureRun): void
}

/** The share of the progress that packing counts for. It takes longer than delivering on most networks. */
const packedPercent = 60

/** dropped: no longer desired. over: the server knows the outcome. Both are cleaned up, and then the run is removed. */
type Life = 'active' | 'dropped' | 'over'

export class CaptureRun {
  readonly #context: CaptureContext
  readonly #cancel = new AbortController()
  #state: CaptureState
  #life: Life = 'active'
  /** The server is being told that it has everything. A desired state without the capture may come before its answer. */
  #isFinishing = false
  #release: (() => Promise<void>) | undefined
  #sent: SentEarly | undefined
  #work: Promise<void> | undefined

  constructor(context: CaptureContext, state: CaptureState) {
    this.#context = context
    this.#state = state
  }

  get id(): string {
    return this.#state.id
  }

  /** The uid of the VM's folder. */
  get uid(): string {
    return this.#state.handle.uid
  }

  get work(): Promise<void> | undefined {
    return this.#work
  }

  /** Keeps the content that is packed for this capture from being evicted. */
  async hold(): Promise<void> {
    try {
      this.#release = await this.#context.images.holdContent(this.id, this.#state.image)
    } catch (error) {
      // If there is no space for the lease, there is none for packing.
      await this.#fail(error)
    }
  }

  async save(): Promise<void> {
    await this.#save(this.#state).catch((error: unknown) => this.#fail(error))
  }

  start(): void {
    if (!this.#context.stopping.aborted) this.#work ??= this.#run()
  }

  drop(): void {
    if (this.#isFinishing) return
    this.#life = 'dropped'
    this.#cancel.abort(new Canceled('the capture was canceled'))
  }

  async #run(): Promise<void> {
    const { stopping, pause, retry } = this.#context
    const signal = AbortSignal.any([stopping, this.#cancel.signal])
    for (let attempt = 1; !stopping.aborted; attempt++) {
      try {
        if (this.#life === 'active') await this.#step(this.#state, signal)
        if (this.#life !== 'active') return await this.#end()
        attempt = 0
      } catch (error) {
        if (stopping.aborted) return
        await this.#stepFailed(error)
        const delayMs = retryDelay(error, Math.max(1, attempt), retry)
        await pause(delayMs, this.#life === 'dropped' ? stopping : signal).catch(() => undefined)
      }
    }
  }

  /** Each step ends in another phase, or ends the run. One that throws is repeated, or fails the capture. */
  #step(state: CaptureState, signal: AbortSignal): Promise<void> {
    switch (state.phase) {
      case 'frozen':
        return this.#context.inTurn(() => this.#pack(state, signal))
      case 'packed':
        return state.kind === 'push' ? this.#push(state, signal) : this.#deliver(state, signal)
      case 'pushed':
        return this.#reportPush(state, signal)
      case 'failed':
        return this.#reportFailure(state, signal)
    }
  }

  async #stepFailed(error: unknown): Promise<void> {
    if (this.#life === 'dropped') return
    if (this.#isUnknown(error)) this.#life = 'dropped'
    else if (isNotFound(error))
      this.#context.log.warn('the server does not know a requested capture', { name: this.id })
    // A registry error is final: the push has retried for minutes.
    else if (this.#state.phase !== 'failed' && (!isRetriable(error) || error instanceof RegistryError))
      await this.#fail(error)
  }

  /** A server whose data is old may not know a capture. It is dropped only if the desired state does not name it either. */
  #isUnknown(error: unknown): boolean {
    return isNotFound(error) && !this.#context.isDesired(this.#state)
  }

  readonly #isAlone = (): Promise<boolean> => this.#context.images.isPackingAlone(this.id)

  async #save(state: CaptureState): Promise<void> {
    this.#state = state
    await this.#context.states.write(state).catch((error: unknown) => {
      // A final state is reported even if it cannot be written. After a kill -9, the step is repeated.
      if (state.phase !== 'failed' && state.phase !== 'pushed') throw error
    })
  }

  async #fail(error: unknown): Promise<void> {
    const { version, id, kind, handle, architecture, image, reference } = this.#state
    const common = { version, id, kind, handle, architecture, image, ...(reference !== undefined && { reference }) }
    const { node, log } = this.#context
    await this.#discardPacked()
    const problem = captureProblem(kind, node, error)
    log.warn('a VM could not be captured', { node, kind, name: handle.uid, problem })
    await this.#save({ ...common, phase: 'failed', problem })
  }

  async #discardPacked(): Promise<void> {
    if (!('content' in this.#state)) return
    await this.#context.packer.discard(this.#state.content, this.#isAlone).catch(() => undefined)
  }

  async #pack(state: StateIn<'frozen'>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { capture, ...common } = state
    const { architecture, image, handle, kind } = common
    const { images, packer } = this.#context
    const { store } = await this.#context.content()
    await using reporter = this.#reporter(signal)
    // Chunks can be sent while others are packed, unless they are sent in another format.
    const isPush = kind === 'push'
    const sendsChunks = isPush && common.format !== 'tart'
    // The layers of a VM can be packed without its image if the destination has, or gets, that from elsewhere.
    // A simulated image has no digest.
    const isStored = async () => digestPattern.test(capture.base) && (await store.has(capture.base))
    const hasImageElsewhere = image.content !== undefined || (sendsChunks && (await isStored()))
    const needsImage = !hasImageElsewhere || capture.layers.some(({ format }) => format === 'raw')
    const base = needsImage ? await this.#fetchImage(signal) : await images.find(image)
    // The server has nothing of an image that was pulled from a registry, but this node may have all of it.
    const isPulled = image.reference !== undefined && (!base || (await hasAllContent(store, base.digest)))
    const content = isPulled ? capture.base : image.content
    let packed = 0
    const reportPush = (): void => {
      const waiting = early?.waiting()
      const phase = `packing, ${Math.floor(100 * packed)} %`
      reporter.report({ percent: 0, bytes: early?.sent().bytes ?? 0, phase, ...(waiting && { waiting }) })
    }
    const early = sendsChunks ? startSending(await this.#pushTarget(signal), signal, reportPush) : undefined
    // Reported before packing begins, because a registry that does not respond delays everything else.
    if (isPush) reportPush()
    const packing = packer.pack(
      { uid: handle.uid, architecture, capture, base, content },
      {
        signal,
        isAlone: this.#isAlone,
        ...(early && { wrapStore: early.wrapStore }),
        progress(share, bytes) {
          packed = share
          if (isPush) reportPush()
          else reporter.report({ percent: share * packedPercent, bytes })
        },
      },
    )
    const digest = await packing.finally(() => early?.end())
    this.#sent = early?.sent()
    failpoint('captures.packed')
    await this.#save({ ...common, phase: 'packed', content: digest })
  }

  async #deliver({ content }: StateIn<'packed'>, signal: AbortSignal): Promise<void> {
    const { server, packer, pause } = this.#context
    const { source } = await this.#context.content()
    await using reporter = this.#reporter(signal)
    let current: CaptureProgress = { percent: packedPercent, bytes: 0 }
    await deliver(content, await packer.contentsOf(content), {
      receiver: { ...server, finish: (digest, during) => this.#finish(digest, during) },
      // Not from the store: content that was evicted here in the meantime may still be on a server.
      read: (digest, bytes, during) => source.read(digest, bytes, during),
      signal,
      pause,
      progress(share, bytes) {
        current = { percent: packedPercent + share * (99 - packedPercent), bytes }
        reporter.report(current)
      },
      onWait: (reason) => reporter.report({ ...current, phase: `waiting: ${reason}`.slice(0, 256) }),
    })
    await this.#delivered(content)
  }

  async #push(state: StateIn<'packed'>, signal: AbortSignal): Promise<void> {
    const { server, packer } = this.#context
    await using reporter = this.#reporter(signal)
    let told: CaptureProgress = { percent: 0, bytes: 0 }
    const digest = await push(state.content, await this.#pushTarget(signal), {
      sent: this.#sent,
      store: await packer.storeWith(() => this.#fetchRest(signal)),
      format: state.format,
      isAlone: this.#isAlone,
      signal,
      progress(progress) {
        told = { ...progress, percent: Math.floor(progress.percent) }
        reporter.report(progress)
      },
      confirm: () => server.report(this.id, told, signal),
    })
    // Written, so that the tag is not moved again if the report does not reach the server: another user may have moved it.
    await this.#save({ ...state, phase: 'pushed', digest, told })
    await reporter.end().catch(() => undefined)
  }

  async #reportPush({ id, digest, told, content }: StateIn<'pushed'>, signal: AbortSignal): Promise<void> {
    // The final report has the count of skipped bytes.
    await this.#context.server.report(id, told, signal)
    await this.#finish(digest, signal)
    await this.#delivered(content)
  }

  async #reportFailure({ id, problem }: StateIn<'failed'>, signal: AbortSignal): Promise<void> {
    await this.#context.server.report(id, { percent: 0, bytes: 0, problem: problem.slice(0, 8_000) }, signal)
    this.#life = 'over'
  }

  async #finish(digest: string, signal: AbortSignal): Promise<readonly string[]> {
    this.#isFinishing = true
    try {
      return await this.#context.server.finish(this.id, digest, signal)
    } finally {
      this.#isFinishing = false
    }
  }

  async #delivered(content: string): Promise<void> {
    failpoint('captures.delivered')
    await this.#context.packer.delivered(content, this.#isAlone).catch(() => undefined)
    this.#life = 'over'
  }

  async #end(): Promise<void> {
    const { driver, states } = this.#context
    if (this.#life === 'dropped') await this.#discardPacked()
    await driver.capturing?.release(this.#state.handle, this.id)
    failpoint('captures.released')
    await states.remove(this.id)
    await this.#release?.()
    this.#context.ended(this)
  }

  async #pushTarget(signal: AbortSignal): Promise<PushTarget> {
    const { reference = '', image, createdAt } = this.#state
    return {
      reference,
      createdAt,
      from: image.reference === undefined ? undefined : { pinned: image.reference, name: image.name },
      login: await this.#context.server.login(this.id, signal),
      retry: this.#context.registryRetry,
    }
  }

  #fetchImage(signal: AbortSignal) {
    const { image } = this.#state
    return this.#context.images.ensure(image, { signal, progress: () => undefined, vm: this.uid })
  }

  /** Fetches the rest of an image from the registry. */
  async #fetchRest(signal: AbortSignal): Promise<void> {
    if (this.#state.image.reference !== undefined) await this.#fetchImage(signal)
  }

  #reporter(signal: AbortSignal): Reporter<CaptureProgress> {
    return createReporter(
      (progress) =>
        this.#context.server.report(this.id, { ...progress, percent: Math.floor(progress.percent) }, signal),
      { failed: (error) => void (this.#isUnknown(error) && this.drop()) },
    )
  }
}

const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404

const done: Readonly<Record<DesiredCapture['kind'], string>> = {
  save: 'saved on',
  commit: 'saved on',
  push: 'pushed from',
}

export const captureProblem = (kind: DesiredCapture['kind'], node: string, error: unknown): string =>
  `Could not be ${done[kind]} node ${node}: ${reasonOf(error)}`
