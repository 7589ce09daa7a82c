// Syncs files while the caller writes more of them.
import fs from 'node:fs/promises'
import { ifAbsent, syncFolder } from '../../platform/files.ts'

/** Leaves the other two of Node's four file threads to the writer. */
const maxParallel = 2

export class Syncing {
  readonly #isLater: boolean
  readonly #waiting: string[] = []
  readonly #folders = new Set<string>()
  readonly #running = new Set<Promise<void>>()
  readonly #failures: unknown[] = []

  /** `isLater`: sync nothing before `end`. */
  constructor({ isLater = false }: { readonly isLater?: boolean } = {}) {
    this.#isLater = isLater
  }

  add(file: string, folder: string): void {
    this.#folders.add(folder)
    this.#waiting.push(file)
    if (!this.#isLater) this.#start()
  }

  /** Resolves when all files and folders are on the disk. */
  async end(): Promise<void> {
    if (this.#waiting.length > 0) this.#start()
    while (this.#running.size > 0) await Promise.all(this.#running)
    if (this.#failures.length > 0) throw this.#failures[0]
    for (const folder of this.#folders) await syncFolder(folder)
    this.#folders.clear()
  }

  #start(): void {
    if (this.#running.size >= maxParallel) return
    const job = this.#syncWaiting()
      .catch((error: unknown) => void this.#failures.push(error))
      .finally(() => this.#running.delete(job))
    this.#running.add(job)
  }

  async #syncWaiting(): Promise<void> {
    for (let name = this.#waiting.shift(); name !== undefined; name = this.#waiting.shift()) {
      // A file that was deleted need not be synced.
      await using file = await fs.open(name, 'r').catch(ifAbsent(undefined))
      await file?.sync()
    }
  }
}
