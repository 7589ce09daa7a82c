// A lock between processes: a file that names its holder. It is created by link(), so that it is never seen incomplete.
// A lock whose holder died is taken over.
import { ifAbsent, readFileIfPresent } from './files.ts'

// `import` would delay each start of the command line.
const fs = process.getBuiltinModule('node:fs/promises')

export class LockedError extends Error {
  override readonly name = 'LockedError'
  readonly pid: number

  constructor(file: string, pid: number) {
    super(`${file} is held by process ${pid}`)
    this.pid = pid
  }
}

/** `busy` makes the error for a lock that a process has; without it, LockedError. */
export async function withLockFile<T>(file: string, work: () => Promise<T>, busy?: (pid: number) => Error): Promise<T> {
  const own = `${process.pid} ${Math.random().toString(36).slice(2)}`
  await take(file, own).catch((error) => {
    throw busy && error instanceof LockedError ? busy(error.pid) : error
  })
  try {
    return await work()
  } finally {
    if ((await readFileIfPresent(file)) === own) await fs.rm(file, { force: true })
  }
}

async function take(file: string, own: string): Promise<void> {
  const draft = `${file}.${own.replace(' ', '.')}`
  await fs.writeFile(draft, own, { flag: 'wx', mode: 0o600 })
  try {
    for (;;) {
      const isTaken = await fs.link(draft, file).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'EEXIST') return false
          throw error
        },
      )
      if (isTaken) return
      await removeIfDead(file)
    }
  } finally {
    await fs.rm(draft, { force: true })
  }
}

/**
 * Renames the lock before deleting it, because another process may have just replaced it. In that case it is put back.
 */
async function removeIfDead(file: string): Promise<void> {
  const text = await readFileIfPresent(file)
  if (text === undefined) return
  const pid = Number(text.split(' ')[0])
  if (processExists(pid)) throw new LockedError(file, pid)
  const aside = `${file}.${process.pid}.dead`
  await fs.rename(file, aside).catch(ifAbsent(undefined))
  if ((await readFileIfPresent(aside)) !== text) await fs.link(aside, file).catch(() => undefined)
  await fs.rm(aside, { force: true })
}

/** Sees processes of other users, too. A pid may be reused; `isAlive` of processes.ts detects that. */
export function processExists(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
