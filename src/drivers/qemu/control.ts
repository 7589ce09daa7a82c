// The one connection to a VM's control socket, kept while it lasts, and what is said over it. A VM's changes are this
// connection's events and its end: nothing is polled.
import type { Observed } from '../driver.ts'
import { qmpSocket } from './arguments.ts'
import { connectQmp, type Qmp } from './qmp.ts'

/** What QEMU's own words for a state mean for us. Not listed: it runs (such as `prelaunch` for a moment). */
const observedOf: Readonly<Record<string, Observed>> = {
  paused: { state: 'suspended' },
  suspended: { state: 'suspended' },
  shutdown: { state: 'stopped' },
  'io-error': { state: 'failed', problem: 'the host could not write the disk (is it full?); QEMU has paused the VM' },
  'internal-error': { state: 'failed', problem: 'QEMU stopped the VM after an internal error' },
  'guest-panicked': { state: 'failed', problem: 'the guest has panicked' },
}
const telling = new Set(['STOP', 'RESUME', 'SHUTDOWN'])
const greetingMs = 2_000

export interface Hearing {
  changed(): void
  /** The guest has powered itself off, and QEMU waits to be ended. */
  poweredOff(): void
  /** The connection is over, most likely because QEMU is. */
  lost(): void
}

export class Control {
  readonly #hearing: Hearing
  #connecting: Promise<Qmp> | undefined

  constructor(hearing: Hearing) {
    this.#hearing = hearing
  }

  connect(runtime: string): Promise<Qmp> {
    if (this.#connecting) return this.#connecting
    const connecting = connectQmp(qmpSocket(runtime), greetingMs)
    this.#connecting = connecting
    const forget = (): boolean => {
      const isOurs = this.#connecting === connecting
      if (isOurs) this.#connecting = undefined
      return isOurs
    }
    connecting.then((qmp) => {
      qmp.listen(({ event }) => {
        if (telling.has(event)) this.#hearing.changed()
        if (event === 'SHUTDOWN') this.#hearing.poweredOff()
      })
      qmp.closed.then(() => forget() && this.#hearing.lost())
    }, forget)
    return connecting
  }

  /** Undefined: it does not answer. It is ending, or somebody else holds its control socket. */
  async observe(runtime: string): Promise<Observed | undefined> {
    const status = await this.connect(runtime)
      .then(statusOf)
      .catch(() => undefined)
    return status === undefined ? undefined : (observedOf[status] ?? { state: 'running' })
  }

  /** Lets go; nothing is heard afterwards. */
  close(): void {
    this.#connecting?.then((qmp) => qmp.close()).catch(() => undefined)
    this.#connecting = undefined
  }
}

export async function statusOf(qmp: Qmp): Promise<string> {
  const answer = (await qmp.execute('query-status')) as { readonly status: string }
  return answer.status
}

/** Settles when the guest has powered off, or the time is over. */
export async function askToPowerDown(qmp: Qmp, graceSeconds: number): Promise<void> {
  const poweredOff = qmp.waitFor('SHUTDOWN', graceSeconds * 1_000)
  if ((await statusOf(qmp)) === 'shutdown') return
  await qmp.execute('cont')
  await qmp.execute('system_powerdown')
  await poweredOff
}
