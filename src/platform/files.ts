// Files that are whole or not there: written to a temporary name, fsynced, renamed, and the folder fsynced. And what is
// said of one that should be read and cannot be.

// Not by `import`, which the command line's bundle would pay for at every start.
const { lstatSync, renameSync, rmSync, writeFileSync } = process.getBuiltinModule('node:fs')
const fs = process.getBuiltinModule('node:fs/promises')
const path = process.getBuiltinModule('node:path')

interface WriteOptions {
  readonly mode?: number
}

export async function writeFileAtomically(
  file: string,
  data: string | Uint8Array,
  options: WriteOptions = {},
): Promise<void> {
  const temporary = `${file}.${process.pid}.${Math.random().toString(36).slice(2, 8)}.tmp`
  try {
    const handle = await fs.open(temporary, 'wx', options.mode ?? 0o600)
    try {
      await handle.writeFile(data)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await fs.rename(temporary, file)
  } catch (error) {
    await fs.rm(temporary, { force: true })
    throw error
  }
  await syncFolder(path.dirname(file))
}

/**
 * Whole or not there, but not fsynced: survives this process, not the host. At once: nothing waits for a disk, and a turn
 * of the event loop for each step would cost ten times as much.
 */
export function writeFileWhole(file: string, data: string): void {
  const temporary = `${file}.tmp`
  try {
    writeFileSync(temporary, data, { mode: 0o600 })
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

export async function syncFolder(folder: string): Promise<void> {
  const handle = await fs.open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The text of a file, or undefined when there is none. Other failures are failures. */
export async function readFileIfPresent(file: string): Promise<string | undefined> {
  try {
    return await fs.readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Not only of files that can be read: one that is meant and cannot be read must not count as absent. */
export function mayBeThere(file: string): boolean {
  try {
    return lstatSync(file) !== undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'this user may not read it: change its owner, and set mode 0600',
  EISDIR: 'it is a folder: put a file in its place',
  ENOENT: 'it is a broken link: restore its target',
  ENOTDIR: 'its parent is not a folder: correct the path',
}

/** For people: why a file that may be there cannot be read, and what to do. */
export function whyUnreadable(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return `cannot be read (${code}): ${reasons[code] ?? message}`
}
