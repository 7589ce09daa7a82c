// `svc3 server users`: edits the users of the built-in identity provider in the data folder of this machine.
import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { KeyringError, loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { LocalUsers, LocalUsersError, type UserDirectory } from '../auth/provider/local-users.ts'
import { StoredUsers } from '../auth/provider/stored-users.ts'
import { SealError } from '../auth/seal.ts'
import { Secrets } from '../auth/secrets.ts'
import type { UsersOptions } from '../cli/programs.ts'
import { administrator, readConnection } from '../control-plane/connection.ts'
import { addressOf, databaseIn, isShared } from '../control-plane/store-place.ts'
import { isAlive } from '../platform/lock-file.ts'
import { openStore } from '../store/open.ts'
import { openCollections } from '../store/records/collections.ts'
import { StoreError } from '../store/store.ts'
import { assertUsable } from '../store/store-state.ts'
import { becomeOwner } from './become-owner.ts'

export async function runUsers(options: UsersOptions): Promise<number> {
  const { dataDir, storeAddress } = options
  becomeOwner(dataDir)
  try {
    const address = await addressOf(dataDir, storeAddress)
    if (isShared(address)) {
      process.stdout.write(await withStored(dataDir, address, (users) => edit(users, options)))
      return 0
    }
    if (!fs.existsSync(databaseIn(dataDir)))
      return fail(
        `${dataDir} is not the data folder of a service`,
        'name it with --data DIR, or start the service once',
      )
    const before = (await readConnection(dataDir))?.adminToken
    const said = await edit(new LocalUsers(dataDir), options)
    if (options.action === 'reset' && before !== undefined) await renewed(options, before)
    process.stdout.write(said)
    return 0
  } catch (error) {
    if (error instanceof LocalUsersError) return fail(error.message, error.hint)
    if (error instanceof StoreError || error instanceof KeyringError || error instanceof SealError)
      return fail(error.message, 'nothing was changed; the store of the service and its master key are needed for this')
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EROFS' || code === 'ENOSPC')
      return fail(`cannot write the users in ${dataDir} (${code})`, 'run this as the user that runs the service')
    throw error
  }
}

/** Where servers share a store: they all see the change at once. */
async function withStored(
  dataDir: string,
  address: string,
  work: (users: UserDirectory) => Promise<string>,
): Promise<string> {
  const store = await openStore(address)
  try {
    await assertUsable(store)
    await using collections = await openCollections(store)
    // Only a server makes a key: without any sealed record there is nothing that tells a wrong one from the right one.
    if (collections.signingKeys.list().length === 0)
      throw new LocalUsersError(`no server has been started on ${address} yet`, 'start one, then try again')
    const secrets = new Secrets(await loadKeyring(takeKeySource(dataDir, { ...process.env }), false))
    for (const { key, value } of collections.signingKeys.list()) secrets.open(key, value)
    return await work(new StoredUsers(collections.users, secrets))
  } finally {
    await store.close()
  }
}

const patienceMs = 20_000

/** Until the next command on this machine has a token again that counts: `svc3 dev` notices the change by itself. */
async function renewed({ dataDir, email }: { dataDir: string; email: string }, before: string): Promise<void> {
  if (email.toLowerCase() !== administrator) return
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(50)) {
    const now = await readConnection(dataDir)
    if (now?.adminToken !== before || !isAlive(now.pid)) return
  }
}

async function edit(users: UserDirectory, options: UsersOptions): Promise<string> {
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
