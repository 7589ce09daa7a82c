// Where a guest is: asked of tart when somebody wants to reach it, by all who wait at once, and remembered until it leads
// nowhere. And where tart serves its screen, which a restarted agent reads from the record of the run.
import type { Guest } from './forwarder.ts'
import { printedVnc, readRun } from './run.ts'
import { addressOf, type Tart } from './tart.ts'

/** Not asked more often while there is none: each question is a process. */
const pauseMs = 500

export class AddressBook implements Guest {
  readonly #tart: Tart
  readonly #folder: string
  #name = ''
  #known: string | undefined
  #asking: Promise<string | undefined> | undefined

  constructor(tart: Tart, folder: string) {
    this.#tart = tart
    this.#folder = folder
  }

  /** What tart knows the VM by from now on. */
  use(name: string): void {
    if (this.#name !== name) this.#known = undefined
    this.#name = name
  }

  async address(): Promise<string | undefined> {
    if (this.#known !== undefined) return this.#known
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
    const found = await addressOf(this.#tart, this.#folder, name)
    if (found !== undefined && name === this.#name) this.#known = found
    const done = () => {
      this.#asking = undefined
    }
    if (found === undefined) setTimeout(done, pauseMs).unref()
    else done()
    return found
  }
}
