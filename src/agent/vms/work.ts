// Carries out the steps of a plan with the driver. Each step can be repeated after an interruption. What must be known after a
// kill -9 is written before the step that relies on it.
import type { DesiredVm } from '../../api/nodes/agent.ts'
import type { BaseImage, Driver, Handle, VmSpec } from '../../drivers/driver.ts'
import { growInside, manualGrowth } from '../../drivers/guest-growth.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Captures } from '../captures/captures.ts'
import type { ArrivalUser } from '../images/arrival.ts'
import { baseKeyOf, type Images } from '../images/images.ts'
import type { Handles, VmHandleRecord } from '../state/handles.ts'
import type { GrowthRequest } from './grow.ts'
import type { SshProbe } from './guest-watch.ts'
import type { Work } from './plan.ts'
import { bytesOf, diskGbOf, driverSpec, isoFile } from './spec.ts'
import { failPointOf, phases, type WorkStep } from './steps.ts'

export interface Tools {
  readonly driver: Driver
  readonly handles: Handles
  readonly images: Images
  readonly captures: Captures
  readonly isoFolder: string
  readonly graceSeconds: number
  /** Grows partition and file system in the guest. Returns a warning if that failed. */
  grow(growth: GrowthRequest, signal: AbortSignal): Promise<string | undefined>
  /** Whether a guest can be reached; absent for simulated VMs. */
  readonly probeSsh?: SshProbe | undefined
}

interface Task {
  readonly tools: Tools
  readonly handle: Handle
  readonly desired: DesiredVm
  /** Changes the VM's record, and writes it. */
  save(change: Partial<VmHandleRecord>): Promise<void>
  progress(phase: string, percent?: number): void
  /** Called when a step has changed the VM's state. */
  stateChanged(state: 'stopped' | 'running' | 'suspended'): void
  /** Whether there is a newer generation, for which the rest must be planned again. */
  isOutdated(): boolean
  readonly credentials: DesiredVm['growth']
  /** Receives the progress of an image that the VM runs on while it is fetched. */
  readonly arrival: ArrivalUser
  readonly signal: AbortSignal
}

export type WorkOutcome =
  | { readonly as: 'done'; readonly warning: string | undefined }
  | { readonly as: 'outdated' }
  | { readonly as: 'failed'; readonly error: unknown; readonly leftovers: readonly unknown[] }

interface StepContext extends Task {
  /** How to undo the steps that were done, or are about to be tried. Emptied when they cannot be undone. */
  readonly undo: (() => Promise<void>)[]
  readonly needsCompleteImage: boolean
  /** Copies of images are leased until this is disposed. */
  readonly held: AsyncDisposableStack
  spec: VmSpec | undefined
  /** What the driver says about the start. */
  note: string | undefined
  warning: string | undefined
}

export async function carryOut({ kind, steps }: Work, task: Task): Promise<WorkOutcome> {
  await using held = new AsyncDisposableStack()
  const context: StepContext = {
    ...task,
    undo: [],
    held,
    needsCompleteImage: steps.includes('grow'),
    spec: undefined,
    note: undefined,
    warning: undefined,
  }
  try {
    for (const step of steps) {
      if (task.isOutdated()) return { as: 'outdated' }
      failpoint(failPointOf(kind, step))
      task.progress(phases[step])
      await actions[step](context)
      const state = results[step]
      if (state) task.stateChanged(state)
    }
    failpoint(failPointOf(kind, 'done'))
    const warnings = [context.note, context.warning].filter((one) => one !== undefined)
    return { as: 'done', warning: warnings.join('; ') || undefined }
  } catch (error) {
    // Work that was interrupted or lacked a port is not undone: the next plan starts from the observed state.
    if (task.signal.aborted || isPortTaken(error)) return { as: 'failed', error, leftovers: [] }
    const leftovers: unknown[] = []
    for (const takeBack of context.undo.toReversed())
      await takeBack().catch((failure: unknown) => leftovers.push(failure))
    return { as: 'failed', error, leftovers }
  }
}

const results: Readonly<Partial<Record<WorkStep, 'stopped' | 'running' | 'suspended'>>> = {
  create: 'stopped',
  start: 'running',
  stop: 'stopped',
  kill: 'stopped',
  suspend: 'suspended',
  resume: 'running',
}

export const isPortTaken = (error: unknown): boolean => error instanceof Error && error.name === 'PortTaken'

const actions: Readonly<Record<WorkStep, (context: StepContext) => Promise<void>>> = {
  async image(context) {
    context.spec = await specFor(context)
  },

  async create(context) {
    const { tools, handle, desired, undo, save } = context
    const spec = requireSpec(context)
    undo.push(async () => {
      await tools.driver.destroy(handle)
      await save({ diskGeneration: 0, diskGb: 0 })
    })
    // Record and disk are complete before the VM starts, so a folder without a record is of a VM that never ran.
    const base = baseKeyOf(desired.image, spec.image)
    const written = save({ diskGeneration: desired.diskGeneration, diskGb: sizeOf(spec), base, ...arrivingOf(spec) })
    const made = tools.driver.create(spec, handle.folder)
    await Promise.all([written, made]).finally(() => Promise.allSettled([written, made]))
  },

  async start(context) {
    const spec = requireSpec(context)
    // This is written before the start, because an agent that replaces this one has to serve the image to the VM.
    if (spec.image.socket !== undefined) await context.save(arrivingOf(spec))
    const { note } = await context.tools.driver.start(context.handle, spec, context.signal)
    context.note = note
  },

  stop: (context) => takeDown(context, context.tools.graceSeconds),
  kill: (context) => takeDown(context, 0),

  async suspend({ tools, handle, desired, signal }) {
    if (desired.isSlot) return capable(tools.driver, 'warm', 'keep VMs as memory').park(handle, signal)
    await capable(tools.driver, 'suspension', 'freeze VMs').suspend(handle)
  },

  async resume({ tools, handle }) {
    await capable(tools.driver, 'suspension', 'resume VMs').resume(handle)
  },

  async revert(context) {
    const { tools, handle, desired, undo, save } = context
    const spec = requireSpec(context)
    await capable(tools.driver, 'reverting', 'revert disks').revert(handle, spec)
    // A revert cannot be undone. It is recorded before the start, because another one would lose the guest's writes.
    undo.length = 0
    await save({
      diskGeneration: desired.diskGeneration,
      diskGb: sizeOf(spec),
      base: baseKeyOf(desired.image, spec.image),
    })
  },

  async grow(context) {
    const { tools, handle, desired, undo, save, credentials } = context
    const diskGb = desired.diskGb ?? 0
    const problem = await capable(tools.driver, 'resizing', 'grow disks').grow(handle, bytesOf(diskGb))
    if (problem !== undefined) context.warning = manualGrowth(problem)
    undo.length = 0
    await save({ diskGb, ...((credentials || tools.driver.inside) && { isGrowing: true }) })
  },

  async partition(context) {
    const { tools, handle, desired, credentials, signal } = context
    const { inside } = tools.driver
    if (inside && context.warning === undefined)
      context.warning = await growInside((script) => inside.shell(handle, script, signal), signal)
    if (!credentials || inside) return
    const { ip: host, ssh: port } = desired
    const { ports } = tools.driver
    const target = { host, port, ...(ports && { isOwn: () => ports.holds(handle, port, host) }) }
    context.warning = await tools.grow({ ...credentials, ...target, diskGb: desired.diskGb ?? 0 }, signal)
  },

  async capture(context) {
    const { tools, handle, desired, signal } = context
    context.warning = await tools.captures.freeze({ handle, desired, signal, spec: () => specFor(context) })
  },

  async claim(context) {
    const { tools, handle, signal, save } = context
    const { note } = await capable(tools.driver, 'warm', 'hand over VMs').claim(handle, await specFor(context), signal)
    context.warning = note
    // The claim is written before it is reported, so that an interrupted one is not mistaken for a failed slot.
    await save({ isClaimed: true })
  },

  async discard({ tools, handle, save }) {
    await removeAll(tools, handle)
    await save({ isClaimed: true, diskGeneration: 0, diskGb: 0 })
  },

  destroy: ({ tools, handle }) => removeAll(tools, handle),
}

/** Removes the VM, and last the folder with its record. */
export async function removeAll({ driver, handles, captures, images }: Tools, handle: Handle): Promise<void> {
  await driver.destroy(handle)
  await images.arrivals.leave(handle.uid)
  await captures.forget(handle.uid)
  await handles.remove(handle.uid)
}

/** Stops the VM. If it was stopped for work on its disk and that fails, it is started again. */
async function takeDown({ tools, handle, spec, undo, signal }: StepContext, graceSeconds: number): Promise<void> {
  if (spec) undo.push(async () => void (await tools.driver.start(handle, spec, AbortSignal.timeout(60_000))))
  // The signal cuts the grace period short, for a deletion or when the agent stops.
  await tools.driver.stop(handle, { graceSeconds, signal })
}

async function specFor(context: StepContext): Promise<VmSpec> {
  const { tools, desired } = context
  const option = (['directories', 'nested', 'rosetta'] as const).find((name) => desired[name])
  if (option && !tools.driver.hasMacOptions)
    throw new Error(`the hypervisor "${tools.driver.name}" of this node has no ${option}; only Macs with tart do`)
  return driverSpec(desired, await imageFor(context), await isoOf(context))
}

/**
 * Returns an image that is still being fetched only if that was requested and the driver supports it. Guests with
 * legacy disks must wait, because they time out on slow reads.
 */
async function imageFor(context: StepContext): Promise<BaseImage> {
  const { desired, signal, progress, held, arrival, needsCompleteImage } = context
  const { images, driver } = context.tools
  const options = { signal, progress, held, vm: desired.uid }
  const mayArrive = desired.imageStart === 'lazy' && driver.arriving && !desired.legacyIO && !needsCompleteImage
  const isCold = desired.isCold ?? false
  return mayArrive
    ? images.arrive(desired.image, arrival, { ...options, isCold })
    : images.ensure(desired.image, options)
}

const arrivingOf = ({ image }: VmSpec): Pick<VmHandleRecord, 'isArriving'> =>
  image.socket === undefined ? {} : { isArriving: true }

async function isoOf({ tools, desired, signal, progress, held }: StepContext): Promise<string | undefined> {
  const { iso: name, isoContent: content } = desired
  if (name === undefined) return undefined
  if (content === undefined) return isoFile(tools.isoFolder, name)
  return tools.images.ensureIso({ name, content }, { signal, progress, held })
}

const sizeOf = ({ image, diskBytes = 0 }: { image: BaseImage; diskBytes?: number }): number =>
  diskGbOf(Math.max(image.virtualSizeBytes, diskBytes))

function requireSpec({ spec }: StepContext): VmSpec {
  if (!spec) throw new Error('the image is missing')
  return spec
}

type Group = 'suspension' | 'resizing' | 'reverting' | 'warm'

function capable<G extends Group>(driver: Driver, group: G, what: string): NonNullable<Driver[G]> {
  const found = driver[group]
  if (found) return found
  throw new Error(`the hypervisor "${driver.name}" of this node cannot ${what}`)
}
