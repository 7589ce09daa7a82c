// Restarts a process whenever it dies, for tests that kill it repeatedly.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

export class Undying implements AsyncDisposable {
  deaths = 0
  child: ChildProcess | undefined
  readonly #start: () => Promise<ChildProcess>
  readonly #died: () => void
  #isOver = false

  constructor(start: () => Promise<ChildProcess>, died: () => void) {
    this.#start = start
    this.#died = died
  }

  async start(): Promise<this> {
    this.child = await this.#start()
    void once(this.child, 'exit').then(async () => {
      this.child = undefined
      this.deaths += 1
      this.#died()
      while (!this.#isOver && !(await this.start().catch(() => undefined))) await sleep(100)
    })
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    const { child } = this
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}
