// Captures a VM at one moment. An empty layer is created and recorded before QEMU switches to it, and the capture is
// recorded last. After an interruption at any point, QEMU knows which layer it uses.
import fs from 'node:fs/promises'
import path from 'node:path'
import { failpoint } from '../../../platform/failpoint.ts'
import { syncFolder } from '../../../platform/files.ts'
import { captureFolder } from '../../capture-records.ts'
import type { CaptureOptions, MemoryState, VmSpec } from '../../driver.ts'
import { explainFullDisk } from '../../refusals.ts'
import { statusOf } from '../control/control.ts'
import { flushGuest } from '../control/flush-guest.ts'
import { GuestAgent, isListening } from '../control/guest-agent.ts'
import type { Qmp } from '../control/qmp.ts'
import type { QemuRun } from '../control/run.ts'
import { type CaptureRecord, memoryFile, readCapture, removeStrays, writeCapture } from '../disks/captures.ts'
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

interface CaptureRequest extends Pick<CaptureOptions, 'id' | 'quiet'> {
  /** If absent, memory is not captured, and `note` says why if it was requested. */
  readonly shape?: MemoryState['description'] | undefined
  readonly note?: string | undefined
}

export interface ControlledVm {
  readonly qmp: Qmp
  readonly runtime: string
}

/** A read that has just begun may wait for a chunk. */
const stopMs = 60_000
/** On a host that writes much, QEMU answers late. */
const answerMs = 30_000
const withLongTimeout = (qmp: Qmp): Qmp => ({
  ...qmp,
  execute: (command, args, limitMs = answerMs) => qmp.execute(command, args, limitMs),
})
/** QEMU's states of a VM that is paused and can continue. */
const pausedStates = new Set(['paused', 'postmigrate', 'finish-migrate', 'save-vm'])

/** `run` is absent if the VM does not run. */
export function requestOf(vm: VmSpec, options: CaptureOptions, run: QemuRun | undefined): CaptureRequest {
  const { withMemory, ...request } = options
  if (!withMemory) return request
  const why = run ? whyNoMemory(run.shape, vm) : 'the VM is not running'
  return why === undefined
    ? { ...request, shape: run?.shape }
    : { ...request, note: `The memory of the VM was not saved: ${why}` }
}

/** Captures only the disk if `found` is undefined: the VM does not run. The caller MUST have exclusive access to it. */
export async function takeCapture(
  folder: string,
  found: ControlledVm | undefined,
  requested: CaptureRequest,
  signal: AbortSignal,
): Promise<CaptureRecord> {
  const known = await readCapture(folder, requested.id)
  if (known) return known
  const living = found && { ...found, qmp: withLongTimeout(found.qmp) }
  await fs.mkdir(captureFolder(folder), { recursive: true, mode: 0o700 })
  await removeStrays(folder)
  // The connection is open until the memory is saved: a guest that is saved with a peer at the other end of its port
  // receives messages at once when it resumes elsewhere.
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

async function agentIn({ qmp, runtime }: ControlledVm, signal: AbortSignal): Promise<GuestAgent | undefined> {
  const isThere = (await statusOf(qmp)) === 'running' && (await isListening(qmp))
  return isThere ? new GuestAgent(runtime, signal) : undefined
}

/** Makes the guest write its page cache, if a guest agent answers. Others are captured without. */
async function flushed(agent: GuestAgent, { runtime }: ControlledVm, request: CaptureRequest): Promise<CaptureRequest> {
  if ((await flushGuest(agent, runtime)) !== 'stuck' || !request.shape) return request
  const { shape: _, ...rest } = request
  return {
    ...rest,
    note: 'The memory of the VM was not saved: the guest did not confirm that its file systems are thawed',
  }
}

/** Creates the next active layer, empty, and records it. */
async function prepare(
  folder: string,
  living: ControlledVm | undefined,
): Promise<{ chain: Chain; next: OverlayLayer }> {
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
  { qmp, runtime }: ControlledVm,
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
  // QEMU flushed the content; this syncs the metadata of the file, too.
  await syncFile(path.join(folder, activeOf(chain).file))
}

/**
 * Completes or undoes an interrupted capture: the VM continues if it ran, and the record says which layer is active. Does
 * nothing if no capture was interrupted.
 */
export async function settleCapture(folder: string, control: Qmp): Promise<void> {
  const chain = await requireChain(folder)
  const { next } = chain
  if (!next) return
  const qmp = withLongTimeout(control)
  const isSwitched = (await nodesInUse(qmp)).includes(nodeOf(next))
  await endSaving(qmp)
  if (chain.goesOn && pausedStates.has(await statusOf(qmp))) await qmp.execute('cont')
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
