// Access of operator commands to the data folder.
import fs from 'node:fs'

export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** Permanently changes a root process to the owner of the folder, because the service could not read root's files. */
export function becomeOwner(dataDir: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = fs.statSync(dataDir, { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 }
  if (uid === 0) return
  process.setgroups?.([gid])
  process.setgid?.(gid)
  process.setuid?.(uid)
}
