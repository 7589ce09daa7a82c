// Writes files atomically, with fsync of file and folder, and explains why a file cannot be read.

// `import` would delay each start of the command line.
const { lstatSync, renameSync, rmSync, writeFileSync } = process.getBuiltinModule('node:fs')
const fs = process.getBuiltinModule('node:fs/promises')
const path = process.getBuiltinModule('node:path')

export async function writeFileAtomically(
  file: string,
  data: string | Uint8Array,
  { mode = 0o600 }: { readonly mode?: number } = {},
): Promise<void> {
  const temporary = `${file}.${process.pid}.${Math.random().toString(36).slice(2, 8)}.tmp`
  try {
    const handle = await fs.open(temporary, 'wx', mode)
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
 * Writes a file atomically, but without fsync: it survives the end of this process, not of the host. Synchronous,
 * because asynchronous steps would take ten times as long.
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

/** For `.catch`: maps a missing file to this value. */
export const ifAbsent =
  <T>(value: T) =>
  (error: NodeJS.ErrnoException): T => {
    if (error.code === 'ENOENT') return value
    throw error
  }

/** Undefined if the file does not exist. Throws for other failures. */
export const readFileIfPresent = (file: string): Promise<string | undefined> =>
  fs.readFile(file, 'utf8').catch(ifAbsent(undefined))

/** The value of a JSON file. Undefined if the file is missing or unreadable, or the value invalid. */
export async function readJsonFile<T>(file: string, isValid: (value: T) => boolean): Promise<T | undefined> {
  try {
    const value = JSON.parse(await fs.readFile(file, 'utf8')) as T
    return isValid(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** True also for files that cannot be read, because they must not count as missing. */
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

/** For users: why a file cannot be read, and what to do. */
export function whyUnreadable(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return `cannot be read (${code}): ${reasons[code] ?? message}`
}
