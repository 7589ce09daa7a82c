// Notifies that a VM may have changed. The end of a process that is not a child causes no event, so the process is checked
// every two seconds.
import { isAlive, type ProcessId } from '../../platform/processes.ts'

const lookEveryMs = 2_000

export class Watch {
  readonly #find: () => Promise<ProcessId | undefined>
  readonly #listeners = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #isLooking = false
  #last: ProcessId | undefined

  constructor(find: () => Promise<ProcessId | undefined>) {
    this.#find = find
  }

  add(changed: () => void): () => void {
    this.#listeners.add(changed)
    this.#begin()
    return () => {
      this.#listeners.delete(changed)
      if (this.#listeners.size === 0) this.#end()
    }
  }

  notify(): void {
    this.#last = undefined
    for (const changed of this.#listeners) changed()
  }

  close(): void {
    this.#listeners.clear()
    this.#end()
  }

  #begin(): void {
    this.#timer ??= setInterval(() => void this.#look(), lookEveryMs).unref()
    void this.#look()
  }

  #end(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#last = undefined
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const last = this.#last
      if (last && !(await isAlive(last))) this.notify()
      this.#last = await this.#find()
    } catch {
    } finally {
      this.#isLooking = false
    }
  }
}
