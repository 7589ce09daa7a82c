// Finds the address of a guest by asking tart when a client connects. The answer is shared by concurrent callers and
// cached for some seconds only, because a guest's former address may soon belong to another. A restarted agent reads the
// address of the screen from the record of the run.
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

  constructor(tart: Tart, folder: string) {
    this.#tart = tart
    this.#folder = folder
  }

  use(name: string): void {
    this.#known = undefined
    this.#name = name
  }

  async address(): Promise<string | undefined> {
    if (this.#known && performance.now() < this.#known.untilMs) return this.#known.address
    this.#asking ??= this.#ask()
    return this.#asking
  }

  isElsewhere(): void {
    this.#known = undefined
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
    if (found === undefined) setTimeout(done, pauseMs).unref()
    else done()
    return found
  }
}
