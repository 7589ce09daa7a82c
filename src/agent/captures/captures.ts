// What this node has frozen of its VMs, on its way to the server or to a registry: packed, then delivered, in the background, while the VM
// goes on. Each goes on from its state after a kill -9; what is no longer desired is released.
import { ApiError } from '../../api/errors.ts'
import type { DesiredVm } from '../../api/nodes/agent.ts'
import type { DesiredCapture } from '../../api/nodes/captures.ts'
import type { Driver, Handle, VmSpec } from '../../drivers/driver.ts'
import { RegistryError } from '../../oci/artifact/errors.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { createReporter, type Reporter } from '../../platform/reporter.ts'
import { type RetryPolicy, retryDelay, retryPolicies, wait } from '../../platform/retry.ts'
import type { Images } from '../images/images.ts'
import { isRetriable } from '../link/connection.ts'
import { createDeliveries, packedPercent } from './deliveries.ts'
import { GivenUp, type Packer } from './pack.ts'
import { type Sent, startSending } from './push.ts'
import type { CaptureProgress, CaptureServer } from './server.ts'
import type { CaptureState, CaptureStates } from './states.ts'

interface CapturesOptions {
  /** The name of this node, for messages. */
  readonly node: string
  readonly driver: Driver
  readonly images: Images
  readonly packer: Packer
  readonly states: CaptureStates
  readonly server: CaptureServer
  /** A capture of this VM has come to its end. */
  changed(uid: string): void
  readonly log: Log
  /** Tests only. */
  readonly retry?: RetryPolicy
  readonly registryRetry?: RetryPolicy
}

interface Freezing {
  readonly handle: Handle
  readonly desired: DesiredVm
  readonly signal: AbortSignal
  spec(): Promise<VmSpec>
}

export interface Captures {
  /** Those of an earlier agent; they go on once the desired state has come. */
  adopt(): Promise<void>
  /** The desired state has come; again whenever the server is back. */
  begin(): void
  /** What is desired of this VM and has not been frozen yet. */
  pending(desired: DesiredVm): readonly DesiredCapture[]
  /** Freezes all of it. What cannot be is a failure of the capture, not of the VM. Returns what somebody should know. */
  freeze(freezing: Freezing): Promise<string | undefined>
  /** Something of this VM is on its way. */
  isBusy(uid: string): boolean
  /** The server names these and no others. */
  setDesired(handle: Handle, ids: readonly string[]): void
  /** Nothing of this VM is left. */
  forget(uid: string): Promise<void>
  stop(): Promise<void>
}

type Packed = Extract<CaptureState, { phase: 'packed' }>
type Pushed = Extract<CaptureState, { phase: 'pushed' }>

interface Running {
  state: CaptureState
  readonly cancel: AbortController
  work: Promise<void> | undefined
  /** What was packed for it stays until then. */
  release: (() => Promise<void>) | undefined
  /** It is no longer desired. */
  isDropped: boolean
}

export function createCaptures(options: CapturesOptions): Captures {
  const { driver, images, packer, states, log } = options
  const running = new Map<string, Running>()
  /** The server is about to say that it has them all. The desired state without them may come first. */
  const finishing = new Set<string>()
  const server: CaptureServer = {
    ...options.server,
    async finish(id, content, signal) {
      finishing.add(id)
      try {
        return await options.server.finish(id, content, signal)
      } finally {
        finishing.delete(id)
      }
    },
  }
  /** Named by the desired state until the next one comes. */
  const ended = new Set<string>()
  /** Those that the newest generation of a VM names. */
  const named = new Map<string, readonly string[]>()
  const stopping = new AbortController()
  let hasBegun = false
  /** Aborted when the server is back: nobody waits any longer for it. */
  let back = new AbortController()
  /** Each uses all cores. */
  let packing: Promise<unknown> = Promise.resolve()

  const pause: typeof wait = (milliseconds, signal) =>
    wait(milliseconds, AbortSignal.any([signal, back.signal])).catch(() => signal.throwIfAborted())

  const keep = async (one: Running, state: CaptureState): Promise<void> => {
    one.state = state
    // An end that cannot be written down is reported all the same; after a kill -9 it would be reached once more.
    await states.write(state).catch((error: unknown) => {
      if (state.phase !== 'failed' && state.phase !== 'pushed') throw error
    })
  }

  const add = async (state: CaptureState): Promise<Running> => {
    const cancel = new AbortController()
    const one: Running = { state, cancel, work: undefined, release: undefined, isDropped: false }
    running.set(state.id, one)
    try {
      one.release = await images.holdContent(state.id, state.image)
    } catch (error) {
      // Without room for a note nothing can be packed either.
      await fail(one, error)
    }
    return one
  }

  const start = (one: Running): void => {
    if (hasBegun && !stopping.signal.aborted)
      one.work ??= run(one, AbortSignal.any([stopping.signal, one.cancel.signal]))
  }

  async function run(one: Running, signal: AbortSignal): Promise<void> {
    for (let attempt = 1; !stopping.signal.aborted; attempt++) {
      try {
        if (!one.isDropped) await steps[one.state.phase](one, signal)
        if (one.isDropped || isOver(one)) return await end(one)
        attempt = 0
      } catch (error) {
        if (stopping.signal.aborted) return
        if (one.isDropped || isGivenUp(one, error)) one.isDropped = true
        else if (isUnknownCapture(error))
          log.warn('the server does not know a requested capture', { name: one.state.id })
        // A registry was waited for long enough.
        else if (one.state.phase !== 'failed' && (!isRetriable(error) || error instanceof RegistryError))
          await fail(one, error)
        const delayMs = retryDelay(error, attempt, options.retry ?? retryPolicies.background)
        await pause(delayMs, one.isDropped ? stopping.signal : signal).catch(() => undefined)
      }
    }
  }

  const alone = (one: Running) => () => images.isPackingAlone(one.state.id)
  /** A server that knows nothing of it is believed where no desired state names it: it may be one that is behind. */
  const isGivenUp = (one: Running, error: unknown): boolean =>
    isUnknownCapture(error) && !named.get(one.state.handle.uid)?.includes(one.state.id)

  const overs = new WeakSet<Running>()
  const isOver = (one: Running): boolean => overs.has(one)

  const fail = async (one: Running, error: unknown): Promise<void> => {
    const { version, id, kind, handle, architecture, image, reference } = one.state
    const known = { version, id, kind, handle, architecture, image, ...(reference !== undefined && { reference }) }
    await forgetPacked(one)
    const problem = problemOf(kind, error)
    log.warn('a VM could not be captured', { node: options.node, kind, name: handle.uid, problem })
    await keep(one, { ...known, phase: 'failed', problem })
  }
  const problemOf = (kind: DesiredCapture['kind'], error: unknown): string =>
    `Could not be ${done[kind]} node ${options.node}: ${reasonOf(error)}`

  /** What each phase leads to. A step that throws is taken again, or is the failure of the capture. */
  const steps: { readonly [P in CaptureState['phase']]: (one: Running, signal: AbortSignal) => Promise<void> } = {
    async frozen(one, signal) {
      const before = packing
      const mine = before.then(() => pack(one, signal))
      packing = mine.catch(() => undefined)
      await mine
    },
    async packed(one, signal) {
      const packed = one.state as Packed
      await using reporter = reporterOf(one, signal)
      const { report } = reporter
      if (packed.kind !== 'push') {
        await toServer(packed, report, signal)
        return await delivered(one, packed)
      }
      const sending = { isAlone: alone(one), sent: headStarts.get(packed.id), report, signal }
      await keep(one, { ...packed, phase: 'pushed', ...(await toRegistry(packed, sending)) })
      await reporter.end().catch(() => undefined)
    },
    async pushed(one, signal) {
      const { id, digest, told } = one.state as Pushed
      // What was skipped is known to the job by this alone.
      await server.report(id, told, signal)
      await server.finish(id, digest, signal)
      await delivered(one, one.state as Pushed)
    },
    async failed(one, signal) {
      const { id, problem } = one.state as Extract<CaptureState, { phase: 'failed' }>
      await server.report(id, { percent: 0, bytes: 0, problem: problem.slice(0, 8_000) }, signal)
      overs.add(one)
    },
  }

  const reporterOf = (one: Running, signal: AbortSignal): Reporter<CaptureProgress> =>
    createReporter(
      (progress) => server.report(one.state.id, { ...progress, percent: Math.floor(progress.percent) }, signal),
      { failed: (error) => void (isGivenUp(one, error) && drop(one)) },
    )

  const delivered = async (one: Running, { content }: Packed | Pushed): Promise<void> => {
    failpoint('captures.delivered')
    await packer.delivered(content, alone(one)).catch(() => undefined)
    overs.add(one)
  }

  const forgetPacked = async (one: Running): Promise<void> => {
    if ('content' in one.state) await packer.dropped(one.state.content, alone(one)).catch(() => undefined)
  }

  /** What pushes have sent while they were being packed. */
  const headStarts = new Map<string, Sent>()
  const { toServer, toRegistry, targetOf } = createDeliveries({
    packer,
    fetchRest: async ({ image, handle }, signal) => {
      if (image.reference !== undefined)
        await images.ensure(image, { signal, progress: () => undefined, vm: handle.uid })
    },
    server,
    pause,
    registryRetry: options.registryRetry,
  })

  async function pack(one: Running, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { capture, ...known } = one.state as Extract<CaptureState, { phase: 'frozen' }>
    const { architecture, image, handle } = known
    await using reporter = reporterOf(one, signal)
    const { report } = reporter
    // In another format, what is packed here is not what is sent.
    const isSentAsItIs = known.kind === 'push' && known.format !== 'tart'
    // What the VM changed is packed without its image: what the server has of that, or a registry, need not come from here.
    const isElsewhere = image.content !== undefined || (isSentAsItIs && (await packer.has(capture.base)))
    const isApart = isElsewhere && capture.layers.every(({ format }) => format !== 'raw')
    const base = isApart
      ? await images.find(image)
      : await images.ensure(image, { signal, progress: () => undefined, vm: handle.uid })
    // Of what was pulled from a registry the server has nothing, but all of it may still be here.
    const isPulled = image.reference !== undefined && (!base || (await packer.isWhole(base.digest)))
    const content = isPulled ? capture.base : image.content
    const job = { uid: handle.uid, architecture, capture, base, content }
    let share = 0
    /** A push counts what it sends, meanwhile too: what it comes to is known after this. */
    const tellPush = (): void => {
      const waiting = headStart?.waiting()
      const phase = `packing, ${Math.floor(100 * share)} %`
      report({ percent: 0, bytes: headStart?.sent().bytes ?? 0, phase, ...(waiting && { waiting }) })
    }
    const headStart = isSentAsItIs ? startSending(await targetOf(one.state, signal), signal, tellPush) : undefined
    // At once: a registry that does not answer holds up everything after this.
    if (known.kind === 'push') tellPush()
    const work = packer.pack(job, {
      signal,
      isAlone: alone(one),
      ...(headStart && { through: headStart.through }),
      progress(packed, bytes) {
        share = packed
        if (known.kind === 'push') tellPush()
        else report({ percent: share * packedPercent, bytes })
      },
    })
    const packed = await work.finally(() => headStart?.end())
    if (headStart) headStarts.set(known.id, headStart.sent())
    failpoint('captures.packed')
    await keep(one, { ...known, phase: 'packed', content: packed })
  }

  function drop(one: Running): void {
    one.isDropped = true
    one.cancel.abort(new GivenUp('the capture was canceled'))
    start(one)
  }

  async function end(one: Running): Promise<void> {
    const { id, handle } = one.state
    if (one.isDropped) await forgetPacked(one)
    await driver.capturing?.release(handle, id)
    failpoint('captures.released')
    await states.remove(id)
    await one.release?.()
    running.delete(id)
    headStarts.delete(id)
    ended.add(id)
    options.changed(handle.uid)
  }

  return {
    async adopt() {
      for (const state of await states.list()) await add(state)
    },
    begin() {
      hasBegun = true
      back.abort()
      back = new AbortController()
      for (const one of running.values()) start(one)
    },
    pending: ({ captures = [] }) => captures.filter(({ id }) => !running.has(id) && !ended.has(id)),
    async freeze({ handle, desired, signal, spec }) {
      const notes: string[] = []
      for (const { id, kind, withMemory, reference, format, createdAt } of this.pending(desired)) {
        const { architecture, image } = desired
        const where = {
          ...(reference !== undefined && { reference }),
          ...(format !== undefined && { format }),
          ...(createdAt !== undefined && { createdAt }),
        }
        const known = { version: 1, id, kind, handle, architecture, image, ...where } as const
        let state: CaptureState
        try {
          const { capturing } = driver
          if (!capturing) throw new Error(`the hypervisor "${driver.name}" cannot save VMs`)
          // Made before an earlier agent was killed, perhaps; the VM may have ended since.
          const made = (await capturing.list(handle)).find((each) => each.id === id)
          if (!made && (await driver.inspect(handle)).state !== 'running')
            throw new Error('the VM was no longer running; start it and save it again')
          const quiet = (): Promise<void> => images.arrivals.idle(handle.uid, signal)
          const capture = made ?? (await capturing.capture(handle, await spec(), { id, withMemory, quiet }, signal))
          state = { ...known, phase: 'frozen', capture }
        } catch (error) {
          signal.throwIfAborted()
          state = { ...known, phase: 'failed', problem: problemOf(kind, error) }
        }
        const one = await add(state)
        await keep(one, state).catch((error: unknown) => fail(one, error))
        failpoint('captures.frozen')
        start(one)
        const note = state.phase === 'frozen' ? state.capture.note : undefined
        if (note !== undefined) notes.push(note)
      }
      return notes[0]
    },
    isBusy: (uid) => [...running.values()].some(({ state }) => state.handle.uid === uid),
    setDesired(handle, ids) {
      named.set(handle.uid, ids)
      for (const one of running.values()) {
        const { id, handle: own } = one.state
        if (own.uid === handle.uid && !ids.includes(id) && !finishing.has(id)) drop(one)
      }
    },
    async forget(uid) {
      named.delete(uid)
      await packer.forget(uid)
    },
    async stop() {
      stopping.abort()
      await Promise.all([...running.values()].map(({ work }) => work))
    },
  }
}

const done: Readonly<Record<DesiredCapture['kind'], string>> = {
  save: 'saved on',
  commit: 'saved on',
  push: 'pushed from',
}

const isUnknownCapture = (error: unknown): boolean => error instanceof ApiError && error.code === 404
