// The captures of this node: states of VMs that are saved as images or pushed to a registry.
//
// What is concurrent. The VM is frozen only for moments, by its worker (agent/vms); packing and delivery run in the background
// while it continues. One capture is packed at a time; chunks of a push are sent while others are packed; deliveries run side by
// side. The desired state may drop a capture in any phase.
//
// What may die when. The state of each capture is written before the step that relies on it, so a killed agent continues in the
// phase that it had reached (states.ts). If the server or the registry is away, the step is repeated: without limit for a server
// that does not respond, for minutes for a registry. Packing again reuses the layers that were packed before.
//
// What is promised. A capture ends once: its image is complete at the destination and the server knows it, or the server knows
// why it failed. A tag in a registry is moved at most once. Content that was packed stays until it is delivered; afterwards, and
// after a failure, nothing is left that only this capture needed. A VM is removed only when its captures have ended.
import type { DesiredVm } from '../../api/nodes/agent.ts'
import type { DesiredCapture } from '../../api/nodes/captures.ts'
import type { Handle, VmSpec } from '../../drivers/driver.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { exclusively } from '../../platform/parallel.ts'
import { type RetryPolicy, retryPolicies, wait } from '../../platform/retry.ts'
import { type CaptureContext, CaptureRun, captureProblem } from './capture-run.ts'
import type { CaptureState } from './states.ts'

interface CapturesOptions
  extends Pick<CaptureContext, 'node' | 'driver' | 'images' | 'packer' | 'content' | 'states' | 'server' | 'log'> {
  /** Called when a capture of this VM has ended. */
  changed(uid: string): void
  /** Tests only, like the next one. */
  readonly retry?: RetryPolicy
  readonly registryRetry?: RetryPolicy
}

interface FreezeOptions {
  readonly handle: Handle
  readonly desired: DesiredVm
  readonly signal: AbortSignal
  spec(): Promise<VmSpec>
}

export class Captures {
  readonly #options: CapturesOptions
  readonly #context: CaptureContext
  readonly #running = new Map<string, CaptureRun>()
  /** Captures that have ended, but which the desired state may still name. */
  readonly #ended = new Set<string>()
  /** The captures that the newest desired state of each VM names. */
  readonly #desired = new Map<string, readonly string[]>()
  readonly #stopping = new AbortController()
  #hasBegun = false
  /** Aborts when the server is back, which ends all waits. */
  #serverBack = new AbortController()

  constructor(options: CapturesOptions) {
    this.#options = options
    this.#context = {
      ...options,
      retry: options.retry ?? retryPolicies.background,
      registryRetry: options.registryRetry,
      stopping: this.#stopping.signal,
      pause: (milliseconds, signal) =>
        wait(milliseconds, AbortSignal.any([signal, this.#serverBack.signal])).catch(() => signal.throwIfAborted()),
      inTurn: (work) => exclusively(this, work),
      isDesired: ({ id, handle }) => this.#desired.get(handle.uid)?.includes(id) ?? false,
      ended: (run) => {
        this.#running.delete(run.id)
        this.#ended.add(run.id)
        options.changed(run.uid)
      },
    }
  }

  /** Takes over captures of an earlier agent. They continue after `begin`. */
  async adopt(): Promise<void> {
    for (const state of await this.#options.states.list()) await this.#add(state)
  }

  /** Starts all captures, and ends their waits. Called whenever the server has sent the desired state. */
  begin(): void {
    this.#hasBegun = true
    this.#serverBack.abort()
    this.#serverBack = new AbortController()
    for (const run of this.#running.values()) run.start()
  }

  pending({ captures = [] }: DesiredVm): readonly DesiredCapture[] {
    return captures.filter(({ id }) => !this.#running.has(id) && !this.#ended.has(id))
  }

  /** Freezes all pending captures. A failure fails the capture, not the VM. Returns a warning for users, if any. */
  async freeze(options: FreezeOptions): Promise<string | undefined> {
    let warning: string | undefined
    for (const capture of this.pending(options.desired)) {
      const state = await this.#freeze(capture, options)
      const run = await this.#add(state)
      await run.save()
      failpoint('captures.frozen')
      if (this.#hasBegun) run.start()
      if (state.phase === 'frozen') warning ??= state.capture.note
    }
    return warning
  }

  isBusy(uid: string): boolean {
    return [...this.#running.values()].some((run) => run.uid === uid)
  }

  /** Drops the captures of this VM that are not among `ids`. */
  setDesired(handle: Handle, ids: readonly string[]): void {
    this.#desired.set(handle.uid, ids)
    for (const run of this.#running.values()) {
      if (run.uid !== handle.uid || ids.includes(run.id)) continue
      run.drop()
      if (this.#hasBegun) run.start()
    }
  }

  /** Removes everything that is remembered of a VM that was removed. */
  async forget(uid: string): Promise<void> {
    this.#desired.delete(uid)
    await this.#options.packer.forget(uid)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([...this.#running.values()].map(({ work }) => work))
  }

  async #add(state: CaptureState): Promise<CaptureRun> {
    const run = new CaptureRun(this.#context, state)
    this.#running.set(state.id, run)
    await run.hold()
    return run
  }

  async #freeze(
    { id, kind, withMemory, reference, format, createdAt }: DesiredCapture,
    { handle, desired, signal, spec }: FreezeOptions,
  ): Promise<CaptureState> {
    const { driver, images, node } = this.#options
    const { architecture, image } = desired
    const common = {
      ...({ version: 1, id, kind, handle, architecture, image } as const),
      ...(reference !== undefined && { reference }),
      ...(format !== undefined && { format }),
      ...(createdAt !== undefined && { createdAt }),
    }
    try {
      const { capturing } = driver
      if (!capturing) throw new Error(`the hypervisor "${driver.name}" cannot save VMs`)
      // An earlier agent may have frozen it before it was killed, and the VM may have ended since.
      const existing = (await capturing.list(handle)).find((each) => each.id === id)
      if (!existing && (await driver.inspect(handle)).state !== 'running')
        throw new Error('the VM was no longer running; start it and save it again')
      const quiet = (): Promise<void> => images.arrivals.idle(handle.uid, signal)
      const capture = existing ?? (await capturing.capture(handle, await spec(), { id, withMemory, quiet }, signal))
      return { ...common, phase: 'frozen', capture }
    } catch (error) {
      signal.throwIfAborted()
      return { ...common, phase: 'failed', problem: captureProblem(kind, node, error) }
    }
  }
}
