// Builds the options of `tart run`, starts it, and finds out whether the VM is up.
import fs from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { failpoint } from '../../platform/failpoint.ts'
import type { Started, VmSpec } from '../driver.ts'
import { isSuspendable, isSuspended, readTartConfig, requireMachine, tartFile } from './machine.ts'
import { type AppleRun, findProcess, lastOfLog, printedVnc, spawnTart, writeRun } from './run.ts'
import { isRunning, type Tart } from './tart.ts'

const contactMs = 120_000
const pauseMs = 50

/** The network of a guest. Ports are forwarded in each case. */
export type AppleNetwork =
  /** tart's network: the host is a router, and its guests can reach it. */
  | { readonly kind: 'shared' }
  /** Softnet: isolated from the host's networks and from other guests, except for allowed addresses. */
  | { readonly kind: 'sealed'; readonly allow?: readonly string[] }
  /** A network card of the host: guests are machines of its network. */
  | { readonly kind: 'bridged'; readonly card: string }

function networkWords(network: AppleNetwork): readonly string[] {
  if (network.kind === 'bridged') return [`--net-bridged=${network.card}`]
  if (network.kind === 'shared') return []
  const { allow = [] } = network
  return ['--net-softnet', ...(allow.length === 0 ? [] : [`--net-softnet-allow=${allow.join(',')}`])]
}

export async function launchOf(
  folder: string,
  vm: VmSpec,
  network: AppleNetwork,
): Promise<Pick<AppleRun, 'name' | 'options' | 'doors'>> {
  const machine = await requireMachine(folder)
  const { ip, forwards, screen, iso } = vm
  const options = [
    '--no-graphics',
    '--no-audio',
    ...(screen ? ['--vnc-experimental'] : []),
    ...(isSuspendable(await readTartConfig(folder, machine)) ? ['--suspendable'] : []),
    ...(iso === undefined ? [] : [`--disk=${iso}:ro`]),
    ...networkWords(network),
  ]
  return { name: machine.name, options, doors: { ip, forwards, ...(screen && { screen: screen.port }) } }
}

/** Tells the user about requests that tart cannot fulfil. */
export function notesOf({ metadata, userdata }: VmSpec, { note }: Started): Started {
  const notes = [
    ...(note === undefined ? [] : [note]),
    ...(Object.keys(metadata).length > 0 || userdata !== undefined
      ? ['its metadata cannot be read in the guest: tart has no way to serve it']
      : []),
  ]
  return notes.length === 0 ? {} : { note: notes.join('; ') }
}

interface BringUp {
  readonly signal: AbortSignal
  /** Called when the process ends, at any time. */
  ended(): void
  /** Ends the process. */
  giveUp(): Promise<void>
}

/** Resumes a suspended VM. If that fails, for example after an update of macOS, the VM boots. */
export async function bringUp(tart: Tart, folder: string, run: AppleRun, options: BringUp): Promise<Started> {
  const wasSuspended = await isSuspended(folder, run)
  try {
    await launch(tart, folder, run, options)
    return {}
  } catch (error) {
    await options.giveUp()
    if (!wasSuspended || options.signal.aborted || !(await isSuspended(folder, run))) throw error
    await fs.rm(tartFile(folder, run, 'state'), { force: true })
    await launch(tart, folder, run, options).catch(async (again: unknown) => {
      await options.giveUp()
      throw again
    })
    return {
      note: `booted from the disk because the suspended state could not be resumed: ${(error as Error).message}`,
    }
  }
}

async function launch(tart: Tart, folder: string, run: AppleRun, { signal, ended: notify }: BringUp): Promise<void> {
  signal.throwIfAborted()
  await writeRun(folder, run)
  failpoint('apple-noted')
  let isOver = false
  const { ended } = await spawnTart(folder, tart, run)
  void ended.then(() => {
    isOver = true
    notify()
  })
  failpoint('apple-spawned')
  const vnc = await untilUp(tart, folder, run, AbortSignal.any([signal, AbortSignal.timeout(contactMs)]), () => isOver)
  const process = isOver ? undefined : await findProcess(folder, run)
  if (!process) throw await didNotStart(folder)
  failpoint('apple-up')
  await writeRun(folder, { ...run, process, ...(vnc !== undefined && { vnc }) })
  failpoint('apple-complete')
}

/** Waits until the VM runs. Returns the address of its screen, which tart prints then; without one, tart is polled. */
async function untilUp(
  tart: Tart,
  folder: string,
  run: AppleRun,
  signal: AbortSignal,
  isOver: () => boolean,
): Promise<string | undefined> {
  const { name, options } = run
  const hasScreen = options.includes('--vnc-experimental')
  // tart calls a VM running while it still reads the suspended state, and removes the state when the VM resumes.
  const isUp = async () => !(await isSuspended(folder, run)) && (await isRunning(tart, folder, name, signal))
  for (;;) {
    signal.throwIfAborted()
    if (isOver()) throw await didNotStart(folder)
    if (hasScreen) {
      const vnc = await printedVnc(folder)
      if (vnc !== undefined) return vnc
    } else if (await isUp().catch(() => false)) return undefined
    await sleep(pauseMs)
  }
}

/** Errors of Apple's framework, which counts the VMs of all programs. */
const tooMany = /number of (VMs|virtual machines) exceeds|maximum supported number of active virtual machines/i

async function didNotStart(folder: string): Promise<Error> {
  const said = await lastOfLog(folder)
  if (tooMany.test(said))
    return new Error(
      `this Mac runs as many VMs with macOS as Apple allows: stop one of them, then start this one again`,
    )
  return new Error(`tart did not start the VM${said === '' ? '' : `: ${said}`}`)
}
