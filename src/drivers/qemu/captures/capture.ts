// Freezes what a VM is in one moment. The order makes it safe: an empty layer is made and written down before QEMU is asked
// to go on with it, and the capture is written down last. Cut off anywhere, QEMU knows where it stands.
import fs from 'node:fs/promises'
import path from 'node:path'
import { failpoint } from '../../../platform/failpoint.ts'
import { syncFolder } from '../../../platform/files.ts'
import { explainFullDisk } from '../../disk-full.ts'
import type { MemoryState, VmSpec } from '../../driver.ts'
import { statusOf } from '../control/control.ts'
import { flushGuest } from '../control/flush-guest.ts'
import { GuestAgent, isListening } from '../control/guest-agent.ts'
import type { Qmp } from '../control/qmp.ts'
import type { QemuRun } from '../control/run.ts'
import {
  type CaptureRecord,
  makeCaptureFolder,
  memoryFile,
  readCapture,
  removeStrays,
  writeCapture,
} from '../disks/captures.ts'
import {
  activeOf,
  type Chain,
  firstNode,
  layerNode,
  nodeOf,
  type OverlayLayer,
  requireChain,
  settledLayers,
  writeChain,
} from '../disks/chain.ts'
import { newLayer } from '../disks/disks.ts'
import { makeOverlay, readHeader, syncFile } from '../disks/overlays.ts'
import { startGuard } from './guard.ts'
import { endSaving, saveMemory, whyNoMemory } from './memory.ts'

interface CaptureRequest {
  readonly id: string
  /** Absent: without memory, and `note` says why. */
  readonly shape?: MemoryState['description'] | undefined
  readonly note?: string | undefined
  readonly quiet?: CaptureOptions['quiet']
}

export interface CaptureOptions {
  readonly id: string
  readonly withMemory: boolean
  /** Until no read of the guest waits for its image: QEMU stops when all are answered, and the guest stands still until then. */
  quiet?: (() => Promise<void>) | undefined
}

/** A VM that lives, and what is said to it. */
export interface Living {
  readonly qmp: Qmp
  readonly runtime: string
}

/** A read that began in this very moment may wait for a chunk. */
const stopMs = 60_000
/** A host with much to write lets QEMU answer late: that is no reason to give up what it is asked to write. */
const answerMs = 30_000
const patient = (qmp: Qmp): Qmp => ({
  ...qmp,
  execute: (command, args, limitMs = answerMs) => qmp.execute(command, args, limitMs),
})
/** QEMU's words for a VM that does not run and could. */
const still = new Set(['paused', 'postmigrate', 'finish-migrate', 'save-vm'])

/** `run` is absent where it does not run. */
export function requestOf(vm: VmSpec, options: CaptureOptions, run: QemuRun | undefined): CaptureRequest {
  const { withMemory, ...request } = options
  if (!withMemory) return request
  const why = run ? whyNoMemory(run.shape, vm) : 'the VM is not running'
  return why === undefined
    ? { ...request, shape: run?.shape }
    : { ...request, note: `The memory of the VM was not saved: ${why}` }
}

/** Undefined in place of a living VM: it does not run, and its disk alone is captured. Nobody else works on it meanwhile. */
export async function takeCapture(
  folder: string,
  found: Living | undefined,
  requested: CaptureRequest,
  signal: AbortSignal,
): Promise<CaptureRecord> {
  const known = await readCapture(folder, requested.id)
  if (known) return known
  const living = found && { ...found, qmp: patient(found.qmp) }
  await makeCaptureFolder(folder)
  await removeStrays(folder)
  // Until its memory is saved: it goes on elsewhere with somebody at the other end, and hears at once what it is told there.
  using agent = living && (await agentIn(living, signal))
  const request = living && agent ? await flushed(agent, living, requested) : requested
  failpoint('capture-flushed')
  signal.throwIfAborted()
  try {
    const { chain, next } = await prepare(folder, living)
    failpoint('capture-prepared')
    if (living) await freeze(folder, living, chain, next, request, signal)
    else await writeChain(folder, { ...withoutNext(chain), layers: [...chain.layers, next] })
    const record = await recordOf(folder, chain, request)
    failpoint('capture-frozen')
    await writeCapture(folder, record)
    failpoint('capture-recorded')
    return record
  } catch (error) {
    await fs.rm(memoryFile(folder, request.id), { force: true })
    throw explainFullDisk(error)
  }
}

/** Undefined where nobody listens. */
async function agentIn({ qmp, runtime }: Living, signal: AbortSignal): Promise<GuestAgent | undefined> {
  const isThere = (await statusOf(qmp)) === 'running' && (await isListening(qmp))
  return isThere ? new GuestAgent(runtime, signal) : undefined
}

/** What the guest had not written yet is on its disk, where a guest agent answers; all others are captured as they are. */
async function flushed(agent: GuestAgent, { runtime }: Living, request: CaptureRequest): Promise<CaptureRequest> {
  if ((await flushGuest(agent, runtime)) !== 'stuck' || !request.shape) return request
  const { shape: _, ...rest } = request
  return {
    ...rest,
    note: 'The memory of the VM was not saved: the guest did not confirm that its file systems are thawed',
  }
}

/** The layer that will be the active one, empty, and the record of it. */
async function prepare(folder: string, living: Living | undefined): Promise<{ chain: Chain; next: OverlayLayer }> {
  const chain = await requireChain(folder)
  const active = activeOf(chain)
  const { virtualBytes } = await readHeader(path.join(folder, active.file))
  const next = newLayer()
  await makeOverlay(path.join(folder, next.file), { name: active.file, format: 'qcow2' }, virtualBytes)
  await syncFolder(folder)
  const settled: Chain = { ...withoutNext(chain), layers: settledLayers(chain) }
  const goesOn = living !== undefined && (await statusOf(living.qmp)) === 'running'
  await writeChain(folder, { ...settled, next, goesOn })
  return { chain: settled, next }
}

async function freeze(
  folder: string,
  { qmp, runtime }: Living,
  chain: Chain,
  next: OverlayLayer,
  { id, shape, quiet }: CaptureRequest,
  signal: AbortSignal,
): Promise<void> {
  using guards = new DisposableStack()
  const goesOn = (await statusOf(qmp)) === 'running'
  try {
    const node = layerNode(path.join(folder, next.file), false)
    await qmp.execute('blockdev-add', { 'node-name': nodeOf(next), ...node, backing: null })
    failpoint('capture-added')
    if (goesOn) guards.use(startGuard(runtime))
    await quiet?.()
    await qmp.execute('stop', undefined, stopMs)
    failpoint('capture-stopped')
    await qmp.execute('blockdev-snapshot', { node: await activeNode(qmp), overlay: nodeOf(next) })
    failpoint('capture-switched')
    if (shape) await saveMemory(qmp, runtime, memoryFile(folder, id), signal)
    failpoint('capture-saved')
  } finally {
    await settleCapture(folder, qmp)
  }
  failpoint('capture-went-on')
  if (shape) await syncFile(memoryFile(folder, id))
  // What QEMU has flushed is on the disk; that it is there under this name, too.
  await syncFile(path.join(folder, activeOf(chain).file))
}

/**
 * What became of a capture, whoever began it: the VM goes on if it ran, and the record says which layer is the active one.
 * Without one under way nothing happens.
 */
export async function settleCapture(folder: string, control: Qmp): Promise<void> {
  const chain = await requireChain(folder)
  const { next } = chain
  if (!next) return
  const qmp = patient(control)
  const isSwitched = (await nodesInUse(qmp)).includes(nodeOf(next))
  await endSaving(qmp)
  if (chain.goesOn && still.has(await statusOf(qmp))) await qmp.execute('cont')
  failpoint('capture-continued')
  const settled = withoutNext(chain)
  if (isSwitched) return writeChain(folder, { ...settled, layers: [...chain.layers, next] })
  await qmp.execute('blockdev-del', { 'node-name': nodeOf(next) }).catch(() => undefined)
  await writeChain(folder, settled)
  await fs.rm(path.join(folder, next.file), { force: true })
}

function withoutNext({ next: _, goesOn: __, ...chain }: Chain): Chain {
  return chain
}

/** The nodes that devices of the VM use. */
async function nodesInUse(qmp: Qmp): Promise<readonly string[]> {
  const devices = (await qmp.execute('query-block')) as { inserted?: { 'node-name'?: string } }[]
  return devices.flatMap(({ inserted }) => inserted?.['node-name'] ?? [])
}

async function activeNode(qmp: Qmp): Promise<string> {
  const node = (await nodesInUse(qmp)).find((name) => name === firstNode || name.startsWith('layer-'))
  if (node === undefined) throw new Error('QEMU does not say what the disk of this VM is')
  return node
}

async function recordOf(folder: string, chain: Chain, { id, shape, note }: CaptureRequest): Promise<CaptureRecord> {
  const { virtualBytes } = await readHeader(path.join(folder, activeOf(chain).file))
  return {
    version: 1,
    id,
    base: chain.base.digest,
    layers: chain.layers,
    virtualSizeBytes: virtualBytes,
    ...(shape && { shape }),
    ...(note !== undefined && { note }),
  }
}
