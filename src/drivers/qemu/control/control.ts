// The one connection to a VM's control socket. Changes of the VM are events of this connection, or its end; there is no
// polling.
import fs from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { orAborted } from '../../../platform/retry.ts'
import { succeeds } from '../../../platform/succeeds.ts'
import type { Observed, StopOptions } from '../../driver.ts'
import { connectQmp, InvalidQmp, type Qmp } from './qmp.ts'
import { qmpSocket } from './sockets.ts'

/** QEMU's status of a VM that waits for free space on the host. */
export const outOfSpace = 'io-error'

/** What QEMU's states mean. In states that are not listed the VM runs (such as `prelaunch` for a moment). */
const observedOf: Readonly<Record<string, Observed>> = {
  paused: { state: 'suspended' },
  suspended: { state: 'suspended' },
  shutdown: { state: 'stopped' },
  [outOfSpace]: {
    state: 'failed',
    problem: "the host's disk is full and the VM is paused; it resumes when there is free space",
  },
  'internal-error': { state: 'failed', problem: 'QEMU stopped the VM after an internal error' },
  'guest-panicked': { state: 'failed', problem: 'the guest has panicked' },
}
const stateEvents = new Set(['STOP', 'RESUME', 'SHUTDOWN'])
const greetingMs = 2_000

interface ControlListener {
  changed(): void
  /** The guest has powered itself off, and QEMU waits to be ended. */
  poweredOff(): void
  /** The connection was closed, most likely because QEMU exited. */
  lost(): void
}

export class Control {
  readonly #listener: ControlListener
  #connecting: Promise<Qmp> | undefined

  constructor(listener: ControlListener) {
    this.#listener = listener
  }

  connect(runtime: string): Promise<Qmp> {
    if (this.#connecting) return this.#connecting
    const connecting = connectQmp(qmpSocket(runtime), greetingMs, (event) => {
      if (stateEvents.has(event)) this.#listener.changed()
      if (event === 'SHUTDOWN') this.#listener.poweredOff()
    })
    this.#connecting = connecting
    const forget = (): boolean => {
      const isOurs = this.#connecting === connecting
      if (isOurs) this.#connecting = undefined
      return isOurs
    }
    connecting.then((qmp) => qmp.closed.then(() => forget() && this.#listener.lost()), forget)
    return connecting
  }

  /** Connects. Retries at short intervals, because QEMU does not announce when it listens. Throws if QEMU exits. */
  async firstContact(runtime: string, ended: Promise<void>, signal: AbortSignal): Promise<void> {
    let isOver = false
    ended.then(() => {
      isOver = true
    })
    for (;;) {
      signal.throwIfAborted()
      if (await succeeds(this.connect(runtime))) return
      if (isOver) throw new Error('QEMU exited immediately without output')
      await Promise.race([ended, sleep(5)])
    }
  }

  /** Undefined if QEMU does not answer: it is exiting, or another program holds its control socket. */
  async observe(runtime: string): Promise<Observed | undefined> {
    try {
      const status = await statusOf(await this.connect(runtime))
      return observedOf[status] ?? { state: 'running' }
    } catch (error) {
      if (!(error instanceof InvalidQmp)) return undefined
      return { state: 'failed', problem: `the VM cannot be controlled: ${error.message}; stop it and start it again` }
    }
  }

  /** Disconnects; no events follow. */
  close(): void {
    this.#connecting?.then((qmp) => qmp.close()).catch(() => undefined)
    this.#connecting = undefined
  }
}

export async function statusOf(qmp: Qmp): Promise<string> {
  const answer = (await qmp.execute('query-status')) as { readonly status: string }
  return answer.status
}

export async function setRunning(qmp: Qmp, isRunning: boolean): Promise<void> {
  await qmp.execute(isRunning ? 'cont' : 'stop')
  const status = await statusOf(qmp)
  if (status !== (isRunning ? 'running' : 'paused')) throw new Error(`QEMU says that the VM is ${status}`)
}

/** The free space at which a VM that could not write continues. */
const roomBytes = 64 * 1_048_576

export async function hasSpaceAgain(qmp: Qmp, folder: string): Promise<boolean> {
  if ((await statusOf(qmp)) !== outOfSpace) return false
  const { bavail, bsize } = await fs.statfs(folder)
  return bavail * bsize > roomBytes
}

/**
 * Settles when the guest has powered off, or after the grace period. The power button is pressed repeatedly, because a
 * booting guest ignores it.
 */
export async function askToPowerDown(qmp: Qmp, { graceSeconds, signal }: StopOptions, everyMs = 2_000): Promise<void> {
  if (graceSeconds <= 0 || signal?.aborted) return
  const poweredOff = qmp.waitFor('SHUTDOWN', graceSeconds * 1_000)
  const press = () => qmp.execute('system_powerdown').catch(() => undefined)
  const again = setInterval(press, everyMs)
  const begin = async () => {
    if ((await statusOf(qmp)) === 'shutdown') return
    await qmp.execute('cont')
    await press()
    await poweredOff
  }
  try {
    await orAborted(Promise.race([poweredOff, begin()]), signal)
  } catch (error) {
    if (!signal?.aborted) throw error
  } finally {
    clearInterval(again)
  }
}
