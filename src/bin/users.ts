// `svc3 server users`: edits the users of the built-in identity provider in the data folder of this machine.
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LocalUsers, LocalUsersError } from '../auth/local-users.ts'
import type { UsersOptions } from '../cli/programs.ts'
import { isAlive } from '../platform/lock-file.ts'
import { becomeOwner } from './become-owner.ts'
import { administrator, readConnection } from './connection.ts'

export async function runUsers(options: UsersOptions): Promise<number> {
  const { dataDir } = options
  // Every service has the one, and those whose records are elsewhere at least the other.
  if (!['svc3.db', 'content'].some((name) => fs.existsSync(path.join(dataDir, name))))
    return fail(`${dataDir} is not the data folder of a service`, 'name it with --data DIR, or start the service once')
  becomeOwner(dataDir)
  try {
    const before = (await readConnection(dataDir))?.adminToken
    const said = await edit(new LocalUsers(dataDir), options)
    if (options.action === 'reset' && before !== undefined) await renewed(options, before)
    process.stdout.write(said)
    return 0
  } catch (error) {
    if (error instanceof LocalUsersError) return fail(error.message, error.hint)
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EROFS' || code === 'ENOSPC')
      return fail(`cannot write the users in ${dataDir} (${code})`, 'run this as the user that runs the service')
    throw error
  }
}

const patienceMs = 3_000

/** Until the next command on this machine has a token again that counts: `svc3 dev` notices the change by itself. */
async function renewed({ dataDir, email }: { dataDir: string; email: string }, before: string): Promise<void> {
  if (email.toLowerCase() !== administrator) return
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(50)) {
    const now = await readConnection(dataDir)
    if (now?.adminToken !== before || !isAlive(now.pid)) return
  }
}

async function edit(users: LocalUsers, options: UsersOptions): Promise<string> {
  switch (options.action) {
    case 'add': {
      const { email, admin } = await users.add(options.email, options)
      return `User ${email} added${admin ? ' as an administrator' : ''}.\n`
    }
    case 'remove':
      return `User ${(await users.remove(options.email)).email} removed; their tokens are refused from now on.\n`
    case 'reset':
      return `User ${(await users.reset(options.email, options.password)).email} has a new password.\n`
    case 'list':
      return users
        .list()
        .map(({ email, admin, createdAt }) => `${email}\t${admin ? 'administrator' : 'user'}\t${createdAt}\n`)
        .join('')
  }
}

function fail(what: string, next: string): number {
  process.stderr.write(`svc3: ${what}\nsvc3: ${next}\n`)
  return 1
}
