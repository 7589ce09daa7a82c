// `svc3 server users`: edits the users of the built-in identity provider in the data folder of this machine.
import fs from 'node:fs'
import path from 'node:path'
import { LocalUsers, LocalUsersError } from '../auth/local-users.ts'
import type { UsersOptions } from '../cli/programs.ts'

export async function runUsers(options: UsersOptions): Promise<number> {
  const { dataDir } = options
  // Every service has the one, and those whose records are elsewhere at least the other.
  if (!['svc3.db', 'content'].some((name) => fs.existsSync(path.join(dataDir, name))))
    return fail(`${dataDir} is not the data folder of a service`, 'name it with --data DIR, or start the service once')
  try {
    process.stdout.write(await edit(new LocalUsers(dataDir), options))
    return 0
  } catch (error) {
    if (error instanceof LocalUsersError) return fail(error.message, error.hint)
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EROFS' || code === 'ENOSPC')
      return fail(`cannot write the users in ${dataDir} (${code})`, 'run this as the user that runs the service')
    throw error
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
