// Builds the options of `tart run`, starts it, and finds out whether the VM is up.
import fs from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { retry } from '../../platform/retry.ts'
import { succeeds } from '../../platform/succeeds.ts'
import type { Started, VmSpec } from '../driver.ts'
import { hostOptions, writeGuestFolder } from './guest-folder.ts'
import { isSuspendable, isSuspended, readTartConfig, renewMac, requireMachine, tartFile } from './machine.ts'
import { type AppleRun, findProcess, lastOfLog, printedVnc, spawnTart, writeRun } from './run.ts'
import { mayPass, StartError } from './start-errors.ts'
import { isRunning, type Tart } from './tart.ts'

const contactMs = 120_000
const pauseMs = 50
/** macOS 13, and some versions of tart with a long path, have no control socket. A VM that has run this long is taken for up. */
const withoutSocketMs = 10_000
const lockRetry = { attempts: Infinity, withinMs: 10_000, firstDelayMs: 500, maxDelayMs: 1_000 }

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
  directories: readonly string[] = [],
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
    await writeGuestFolder(folder, vm),
    ...(await hostOptions(vm, directories)),
  ]
  return { name: machine.name, options, doors: { ip, forwards, ...(screen && { screen: screen.port }) } }
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
    await retry(() => launch(tart, folder, run, options), {
      policy: lockRetry,
      signal: options.signal,
      isRetriable: mayPass,
    })
    return {}
  } catch (error) {
    await options.giveUp()
    if (!wasSuspended || options.signal.aborted || !(await isSuspended(folder, run))) throw error
    if (error instanceof StartError && error.isOfHost) throw error
    await fs.rm(tartFile(folder, run, 'state'), { force: true })
    await renewMac(folder, run)
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
  await fs.rm(tartFile(folder, run, 'control'), { force: true })
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
  if (!process) throw new StartError(await lastOfLog(folder))
  failpoint('apple-up')
  await writeRun(folder, { ...run, process, ...(vnc !== undefined && { vnc }) })
  failpoint('apple-complete')
}

/**
 * Waits until the VM runs. Returns the address of its screen, which tart prints then. Without one, tart binds its control
 * socket then; it calls a VM running before the framework has started it.
 */
async function untilUp(
  tart: Tart,
  folder: string,
  run: AppleRun,
  signal: AbortSignal,
  isOver: () => boolean,
): Promise<string | undefined> {
  const { name, options } = run
  const hasScreen = options.includes('--vnc-experimental')
  const askAtMs = performance.now() + withoutSocketMs
  // tart removes the suspended state when the VM resumes.
  const isUp = async () =>
    (await succeeds(fs.access(tartFile(folder, run, 'control')))) ||
    (performance.now() > askAtMs && !(await isSuspended(folder, run)) && (await isRunning(tart, folder, name, signal)))
  for (;;) {
    signal.throwIfAborted()
    if (isOver()) throw new StartError(await lastOfLog(folder))
    if (hasScreen) {
      const vnc = await printedVnc(folder)
      if (vnc !== undefined) return vnc
    } else if (await isUp().catch(() => false)) return undefined
    await sleep(pauseMs)
  }
}
