// "One at a time" between processes: a file that names its holder. The lock of a process that died is taken over.
import fs from 'node:fs/promises'
import { readFileIfPresent } from './files.ts'

export class LockedError extends Error {
  override readonly name = 'LockedError'
  readonly pid: number

  constructor(file: string, pid: number) {
    super(`${file} is held by process ${pid}`)
    this.pid = pid
  }
}

export async function withLockFile<T>(file: string, work: () => Promise<T>): Promise<T> {
  await take(file)
  try {
    return await work()
  } finally {
    await fs.rm(file, { force: true })
  }
}

async function take(file: string): Promise<void> {
  for (;;) {
    try {
      return await fs.writeFile(file, String(process.pid), { flag: 'wx', mode: 0o600 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const holder = Number((await readFileIfPresent(file)) ?? 0)
      if (isAlive(holder)) throw new LockedError(file, holder)
      await fs.rm(file, { force: true })
    }
  }
}

export function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
