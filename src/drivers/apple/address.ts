// Finds the address of a guest by asking tart when a client connects. The answer is shared by concurrent callers and
// cached for some seconds only, because a guest's former address may soon belong to another. A restarted agent reads the
// address of the screen from the record of the run.
import { type GuestReach, isUnreachable } from '../../api/vms/guest-reach.ts'
import { unreachable } from '../reach.ts'
import type { ForwardedGuest } from './forwarder.ts'
import { printedVnc, readRun } from './run.ts'
import { type Tart, vmAddress } from './tart.ts'

/** Each query starts a process, so a guest without an address is not queried more often. */
const pauseMs = 500
const rememberedMs = 10_000

export class AddressBook implements ForwardedGuest {
  readonly #tart: Tart
  readonly #folder: string
  #name = ''
  #known: { readonly address: string; readonly untilMs: number } | undefined
  #asking: Promise<string | undefined> | undefined

  #reach: GuestReach | undefined
  readonly #unreached: () => void

  /** `unreached` is called when a connection failed for another reason than the one before. */
  constructor(tart: Tart, folder: string, unreached: () => void = () => undefined) {
    this.#unreached = unreached
    this.#tart = tart
    this.#folder = folder
  }

  use(name: string): void {
    this.#known = undefined
    this.#reach = undefined
    this.#name = name
  }

  async address(): Promise<string | undefined> {
    if (this.#known && performance.now() < this.#known.untilMs) return this.#known.address
    this.#asking ??= this.#ask()
    return this.#asking
  }

  /** How the latest connection to the guest ended. */
  get reach(): GuestReach | undefined {
    return this.#reach
  }

  reached(): void {
    this.#note({ ok: true })
  }

  failed(address: string, error: NodeJS.ErrnoException): void {
    // A refusal comes from the guest, so its address is right.
    if (error.code !== 'ECONNREFUSED') this.#known = undefined
    this.#note(unreachable(error, address))
  }

  #note(reach: GuestReach): void {
    const before = this.#reach
    this.#reach = reach
    if (isUnreachable(reach) && !(isUnreachable(before) && before.reason === reach.reason)) this.#unreached()
  }

  async screen(): Promise<string | undefined> {
    return (await readRun(this.#folder))?.vnc ?? (await printedVnc(this.#folder))
  }

  async #ask(): Promise<string | undefined> {
    const name = this.#name
    const found = await vmAddress(this.#tart, this.#folder, name)
    if (found !== undefined && name === this.#name)
      this.#known = { address: found, untilMs: performance.now() + rememberedMs }
    const done = () => {
      this.#asking = undefined
    }
    if (found === undefined) this.#note({ reason: 'NoAddress', message: 'tart knows no address of the guest' })
    if (found === undefined) setTimeout(done, pauseMs).unref()
    else done()
    return found
  }
}
