// Temporary files. Their names identify the process that writes them, even after a reboot that reuses pids, so that the
// files of killed processes can be removed.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { ifAbsent, syncFolder } from '../../platform/files.ts'
import { stampOf } from '../../platform/processes.ts'

const pattern = /^\.unfinished-(\d+)-([0-9a-f]{16})-[0-9a-f]{12}$/
let own: Promise<string> | undefined

export async function temporaryName(folder: string): Promise<string> {
  own ??= stampOf(process.pid)
  return path.join(folder, `.unfinished-${process.pid}-${await own}-${randomBytes(6).toString('hex')}`)
}

/** Removes the temporary files of ended processes. */
export async function removeUnfinished(folder: string): Promise<void> {
  for (const name of await fs.readdir(folder).catch(ifAbsent([]))) {
    const [, pid, stamp] = pattern.exec(name) ?? []
    if (pid !== undefined && (await stampOf(Number(pid))) !== stamp)
      await fs.rm(path.join(folder, name), { force: true })
  }
}

/** Creates a file atomically: after a failure or a crash, the target is as before. */
export async function writeWhole(
  target: string,
  write: (file: fs.FileHandle, name: string) => Promise<void>,
): Promise<void> {
  const folder = path.dirname(target)
  const temporary = await temporaryName(folder)
  try {
    {
      await using file = await fs.open(temporary, 'wx', 0o600)
      await write(file, temporary)
      await file.sync()
    }
    await fs.rename(temporary, target)
  } catch (error) {
    await fs.rm(temporary, { force: true })
    throw explainFull(error, folder)
  }
  await syncFolder(folder)
}

export class DiskFullError extends Error {
  override readonly name = 'DiskFullError'
  constructor(folder: string, cause: unknown) {
    super(`The disk of ${folder} is full; free space and try again`, { cause })
  }
}

const maxReserveBytes = 2 ** 30
const reserveShare = 0.05

/** How many bytes an upload or download may write. The rest of the disk is reserved for records. */
export async function roomOn(folder: string): Promise<number> {
  const { bavail, bsize, blocks } = await fs.statfs(folder)
  return Math.max(0, Math.floor(bavail * bsize - Math.min(maxReserveBytes, blocks * bsize * reserveShare)))
}

const fullCodes = new Set(['ENOSPC', 'EDQUOT'])

export function explainFull(error: unknown, folder: string): unknown {
  const { code = '' } = (error ?? {}) as NodeJS.ErrnoException
  if (fullCodes.has(code)) return new DiskFullError(folder, error)
  if (code !== 'EFBIG') return error
  return new Error(`The file system of ${folder} cannot hold a file of this size; use another one, such as XFS`)
}
