// The user that a service runs as: found, or made where the host lets us.
import type { ServiceKind } from './service.ts'
import type { RunProgram } from './supervisors.ts'

export interface Account {
  readonly uid: number
  readonly gid: number
}

const nameForm = /^[a-z_][a-z0-9_-]{0,31}$/
export const isAccountName = (name: string): boolean => nameForm.test(name)

export async function findAccount(name: string, run: RunProgram): Promise<Account | undefined> {
  try {
    return { uid: Number((await run('id', '-u', name)).trim()), gid: Number((await run('id', '-g', name)).trim()) }
  } catch {
    return undefined
  }
}

/** A user that nobody logs in as. On macOS the operator's own runs VMs: Virtualization wants a real one. */
export async function createAccount(name: string, home: string, run: RunProgram): Promise<Account> {
  if (process.platform === 'darwin')
    throw new Error(`User ${name} not found on this Mac. Choose an existing user with --user`)
  await run(
    'useradd',
    ...['--system', '--user-group', '--home-dir', home, '--no-create-home', '--shell', '/usr/sbin/nologin', name],
  )
  const made = await findAccount(name, run)
  if (made) return made
  throw new Error(`useradd did not create user ${name}`)
}

/** /dev/kvm belongs to a group, where there is one. */
const wanted: Readonly<Record<ServiceKind, readonly string[]>> = { agent: ['kvm'], server: [] }

export async function accountGroups(kind: ServiceKind, run: RunProgram): Promise<readonly string[]> {
  if (process.platform !== 'linux') return []
  const found: string[] = []
  for (const name of wanted[kind])
    if (
      await run('getent', 'group', name).then(
        () => true,
        () => false,
      )
    )
      found.push(name)
  return found
}
