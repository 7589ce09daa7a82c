// Access to the data folder for commands of the operator: as its owner, and with readable errors.
import fs from 'node:fs'

/** A command on the data of a service cannot do what was asked for; the message says why. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/**
 * Who works on a service's data as root leaves files that the service cannot read: so root becomes the owner of the folder
 * first, for the rest of the process.
 */
export function becomeOwner(dataDir: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = fs.statSync(dataDir, { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 }
  if (uid === 0) return
  process.setgroups?.([gid])
  process.setgid?.(gid)
  process.setuid?.(uid)
}
