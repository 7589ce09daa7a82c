// Access of operator commands to the data folder.
import fs from 'node:fs'
import path from 'node:path'
import type { UserDirectory } from '../auth/provider/users.ts'
import { StoreError } from '../store/store.ts'

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

/** Refuses a folder whose users are not in the store yet. 3.0.0-alpha.31 renames the file while it moves them. */
export function assertUsersMoved(dataDir: string, users: Pick<UserDirectory, 'isEmpty'>): void {
  const file = path.join(dataDir, 'users.json')
  if (!fs.existsSync(`${file}.importing`) && !(users.isEmpty && fs.existsSync(file))) return
  throw new StoreError(
    'OtherFormat',
    `${file} has the users of a version before 3.0.0-alpha.30: start svc3 3.0.0-alpha.31 on ${dataDir} once, which moves ` +
      'them to the store',
  )
}
