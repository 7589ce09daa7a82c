// Files made lasting behind the back of whoever writes more of them: a few at a time, and all of them at the end.
import fs from 'node:fs/promises'
import { syncFolder } from '../../platform/files.ts'
import { ifAbsent } from './temporary-files.ts'

export interface Syncing {
  /** Returns at once. */
  add(file: string, folder: string): void
  /** Until everything that was added is on the disk. Throws where something could not be. */
  end(): Promise<void>
}

/** The others of Node's four threads are for whoever writes. */
const maxAtOnce = 2

/** `isLater`: nothing before the end. */
export function createSyncing({ isLater = false }: { readonly isLater?: boolean } = {}): Syncing {
  const waiting: string[] = []
  const folders = new Set<string>()
  const running = new Set<Promise<void>>()
  const failures: unknown[] = []

  async function work(): Promise<void> {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) await syncFile(file)
  }

  function start(): void {
    if (running.size >= maxAtOnce) return
    const job: Promise<void> = work()
      .catch((error: unknown) => void failures.push(error))
      .finally(() => running.delete(job))
    running.add(job)
  }

  return {
    add(file, folder) {
      folders.add(folder)
      waiting.push(file)
      if (!isLater) start()
    },
    async end() {
      if (waiting.length > 0) start()
      while (running.size > 0) await Promise.all(running)
      if (failures.length > 0) throw failures[0]
      for (const folder of folders) await syncFolder(folder)
      folders.clear()
    },
  }
}

/** What was removed meanwhile need not last. */
async function syncFile(name: string): Promise<void> {
  const file = await fs.open(name, 'r').catch(ifAbsent(undefined))
  try {
    await file?.sync()
  } finally {
    await file?.close()
  }
}
