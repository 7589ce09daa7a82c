// The user that a service runs as: an existing one, or on Linux a new system user.
import { succeeds } from '../platform/succeeds.ts'
import type { ServiceKind } from './service.ts'
import type { RunProgram } from './supervisors.ts'

export interface Account {
  readonly uid: number
  readonly gid: number
}

export const isAccountName = (name: string): boolean => /^[a-z_][a-z0-9_-]{0,31}$/.test(name)

export async function findAccount(name: string, run: RunProgram): Promise<Account | undefined> {
  try {
    return { uid: Number((await run('id', '-u', name)).trim()), gid: Number((await run('id', '-g', name)).trim()) }
  } catch {
    return undefined
  }
}

/** Creates a system user without login. Throws on macOS, where only a user who has logged in once can run VMs. */
export async function createAccount(name: string, home: string, run: RunProgram): Promise<Account> {
  if (process.platform === 'darwin')
    throw new Error(`User ${name} not found on this Mac. Choose an existing user with --user`)
  await run(
    'useradd',
    ...['--system', '--user-group', '--home-dir', home, '--no-create-home', '--shell', '/usr/sbin/nologin', name],
  )
  const account = await findAccount(name, run)
  if (account) return account
  throw new Error(`useradd did not create user ${name}`)
}

/** The agent needs access to /dev/kvm. */
export async function accountGroups(kind: ServiceKind, run: RunProgram): Promise<readonly string[]> {
  if (process.platform !== 'linux' || kind !== 'agent') return []
  return (await succeeds(run('getent', 'group', 'kvm'))) ? ['kvm'] : []
}
