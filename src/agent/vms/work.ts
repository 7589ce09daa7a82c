// Carries out the steps of a plan on the driver. Every step can be done again after it was cut off; what must be known
// after a kill -9 is written before the step that relies on it.
import type { DesiredVm } from '../../api/nodes/agent.ts'
import type { BaseImage, Driver, Handle, VmSpec } from '../../drivers/driver.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { createUndo, type Undo } from '../../platform/undo.ts'
import type { Captures } from '../captures/captures.ts'
import type { ArrivalUser } from '../images/arrival.ts'
import { baseKeyOf, type Images } from '../images/images.ts'
import type { Handles, VmHandleRecord } from '../state/handles.ts'
import type { Greets } from './boot-watch.ts'
import type { GrowthRequest } from './grow.ts'
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
  /** Grows partition and file system in the guest; returns what somebody should know, when it did not work. */
  grow(growth: GrowthRequest, signal: AbortSignal): Promise<string | undefined>
  /** Asks a guest whether it has booted; absent where there are no guests. */
  readonly greets?: Greets | undefined
}

interface Task {
  readonly tools: Tools
  readonly handle: Handle
  readonly desired: DesiredVm
  /** Changes what is known of the VM, and writes it down. */
  keep(change: Partial<VmHandleRecord>): Promise<void>
  progress(phase: string, percent?: number): void
  /** A step has changed what the VM is. */
  became(state: 'stopped' | 'running' | 'suspended'): void
  /** A newer generation is there: the rest is planned anew. */
  isOutdated(): boolean
  readonly credentials: DesiredVm['growth']
  /** For an image that it may run on before all of it has come. */
  readonly arrival: ArrivalUser
  readonly signal: AbortSignal
}

export type WorkOutcome =
  | { readonly as: 'done'; readonly warning: string | undefined }
  | { readonly as: 'outdated' }
  | { readonly as: 'failed'; readonly error: unknown; readonly leftovers: readonly unknown[] }

interface Bench extends Task {
  readonly undo: Undo
  /** The work on it needs the image whole. */
  readonly needsWhole: boolean
  /** Copies of images stay where they are until it is disposed of. */
  readonly held: AsyncDisposableStack
  spec: VmSpec | undefined
  warning: string | undefined
}

export async function carryOut({ kind, steps }: Work, task: Task): Promise<WorkOutcome> {
  const undo = createUndo()
  await using held = new AsyncDisposableStack()
  const bench: Bench = { ...task, undo, held, needsWhole: steps.includes('grow'), spec: undefined, warning: undefined }
  try {
    for (const step of steps) {
      if (task.isOutdated()) return { as: 'outdated' }
      failpoint(failPointOf(kind, step))
      task.progress(phases[step])
      await actions[step](bench)
      const state = results[step]
      if (state) task.became(state)
    }
    failpoint(failPointOf(kind, 'done'))
    return { as: 'done', warning: bench.warning }
  } catch (error) {
    // The desired state changed meanwhile, or the agent stops: what comes next looks at what is there.
    if (task.signal.aborted || isPortTaken(error)) return { as: 'failed', error, leftovers: [] }
    return { as: 'failed', error, leftovers: await undo.run() }
  }
}

/** What a VM is after a step. */
const results: Readonly<Partial<Record<WorkStep, 'stopped' | 'running' | 'suspended'>>> = {
  create: 'stopped',
  start: 'running',
  stop: 'stopped',
  kill: 'stopped',
  suspend: 'suspended',
  resume: 'running',
}

export const isPortTaken = (error: unknown): boolean => error instanceof Error && error.name === 'PortTaken'

const actions: Readonly<Record<WorkStep, (bench: Bench) => Promise<void>>> = {
  async image(bench) {
    bench.spec = await specFor(bench)
  },

  async create(bench) {
    const { tools, handle, desired, undo, keep } = bench
    const spec = specOfBench(bench)
    undo.push(async () => {
      await tools.driver.destroy(handle)
      await keep({ diskGeneration: 0, diskGb: 0 })
    })
    // At once, and both before the start: a folder without a record is one whose VM never ran.
    const base = baseKeyOf(desired.image, spec.image)
    const written = keep({ diskGeneration: desired.diskGeneration, diskGb: sizeOf(spec), base, ...arrivingOf(spec) })
    const made = tools.driver.create(spec, handle.folder)
    await Promise.all([written, made]).finally(() => Promise.allSettled([written, made]))
  },

  async start(bench) {
    const spec = specOfBench(bench)
    // Before it runs: an agent that comes back has to serve it.
    if (spec.image.socket !== undefined) await bench.keep(arrivingOf(spec))
    const { note } = await bench.tools.driver.start(bench.handle, spec, bench.signal)
    bench.warning = note
  },

  stop: (bench) => takeDown(bench, bench.tools.graceSeconds),
  kill: (bench) => takeDown(bench, 0),

  async suspend({ tools, handle, desired, signal }) {
    if (desired.isSlot) return capable(tools.driver, 'warm', 'keep VMs as memory').park(handle, signal)
    await capable(tools.driver, 'suspension', 'freeze VMs').suspend(handle)
  },

  async resume({ tools, handle }) {
    await capable(tools.driver, 'suspension', 'resume VMs').resume(handle)
  },

  async revert(bench) {
    const { tools, handle, desired, undo, keep } = bench
    const spec = specOfBench(bench)
    await capable(tools.driver, 'reverting', 'revert disks').revert(handle, spec)
    // From here on there is no way back. Written before the start: a second revert would lose what the guest wrote.
    undo.clear()
    await keep({
      diskGeneration: desired.diskGeneration,
      diskGb: sizeOf(spec),
      base: baseKeyOf(desired.image, spec.image),
    })
  },

  async grow({ tools, handle, desired, undo, keep, credentials }) {
    const diskGb = desired.diskGb ?? 0
    await capable(tools.driver, 'resizing', 'grow disks').grow(handle, bytesOf(diskGb))
    undo.clear()
    await keep({ diskGb, ...(credentials && { isGrowing: true }) })
  },

  async partition(bench) {
    const { tools, handle, desired, credentials, signal } = bench
    if (!credentials) return
    const { ip: host, ssh: port } = desired
    const { ports } = tools.driver
    const target = { host, port, ...(ports && { isOwn: () => ports.holds(handle, port, host) }) }
    bench.warning = await tools.grow({ ...credentials, ...target, diskGb: desired.diskGb ?? 0 }, signal)
  },

  async capture(bench) {
    const { tools, handle, desired, signal } = bench
    bench.warning = await tools.captures.freeze({ handle, desired, signal, spec: () => specFor(bench) })
  },

  async claim(bench) {
    const { tools, handle, signal, keep } = bench
    const { note } = await capable(tools.driver, 'warm', 'hand over VMs').claim(handle, await specFor(bench), signal)
    bench.warning = note
    // Before anybody hears of it: cut off after that, it must not be taken for a slot that failed.
    await keep({ isClaimed: true })
  },

  async discard({ tools, handle, keep }) {
    await removeAll(tools, handle)
    await keep({ isClaimed: true, diskGeneration: 0, diskGb: 0 })
  },

  destroy: ({ tools, handle }) => removeAll(tools, handle),
}

/** The VM, and then the folder with the record of it. */
export async function removeAll({ driver, handles, captures, images }: Tools, handle: Handle): Promise<void> {
  await driver.destroy(handle)
  await images.arrivals.leave(handle.uid)
  await captures.forget(handle.uid)
  await handles.remove(handle.uid)
}

/** Where it goes down for work on its disk, it comes up again when that fails. */
async function takeDown({ tools, handle, spec, undo, signal }: Bench, graceSeconds: number): Promise<void> {
  if (spec) undo.push(async () => void (await tools.driver.start(handle, spec, AbortSignal.timeout(60_000))))
  // A deletion does not wait for what it may have to save, and neither does an agent that stops.
  await tools.driver.stop(handle, { graceSeconds, signal })
}

async function specFor(bench: Bench): Promise<VmSpec> {
  return driverSpec(bench.desired, await imageFor(bench), await isoOf(bench))
}

/** Whole, or on its way where that was asked for and the driver can. Drivers of old disks give up on slow ones. */
async function imageFor({ tools, desired, signal, progress, held, arrival, needsWhole }: Bench): Promise<BaseImage> {
  const { images, driver } = tools
  const options = { signal, progress, held, vm: desired.uid }
  const mayArrive = desired.imageStart === 'lazy' && driver.arriving && !desired.legacyIO && !needsWhole
  const isCold = desired.isCold ?? false
  return mayArrive
    ? images.arrive(desired.image, arrival, { ...options, isCold })
    : images.ensure(desired.image, options)
}

const arrivingOf = ({ image }: VmSpec): Pick<VmHandleRecord, 'isArriving'> =>
  image.socket === undefined ? {} : { isArriving: true }

async function isoOf({ tools, desired, signal, progress, held }: Bench): Promise<string | undefined> {
  const { iso: name, isoContent: content } = desired
  if (name === undefined) return undefined
  if (content === undefined) return isoFile(tools.isoFolder, name)
  return tools.images.ensureIso({ name, content }, { signal, progress, held })
}

const sizeOf = ({ image, diskBytes = 0 }: { image: BaseImage; diskBytes?: number }): number =>
  diskGbOf(Math.max(image.virtualSizeBytes, diskBytes))

function specOfBench({ spec }: Bench): VmSpec {
  if (!spec) throw new Error('the image is missing')
  return spec
}

type Group = 'suspension' | 'resizing' | 'reverting' | 'warm'

function capable<G extends Group>(driver: Driver, group: G, what: string): NonNullable<Driver[G]> {
  const found = driver[group]
  if (found) return found
  throw new Error(`the hypervisor "${driver.name}" of this node cannot ${what}`)
}
