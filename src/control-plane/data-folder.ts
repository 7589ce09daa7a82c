// Access to the data folder for commands of the operator: as its owner, and with readable errors.
import fs from 'node:fs'

/** A command on the data of a service failed for the reason in the message. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/**
 * Files that root writes into a data folder would be unreadable for the service. So a process of root takes the
 * identity of the folder's owner, for good.
 */
export function becomeOwner(dataDir: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = fs.statSync(dataDir, { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 }
  if (uid === 0) return
  process.setgroups?.([gid])
  process.setgid?.(gid)
  process.setuid?.(uid)
}
