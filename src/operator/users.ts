// svc3 server users: edits the users of the built-in identity provider in the local data folder.
import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { KeyringError, loadKeyring, takeKeySource } from '../auth/keyring.ts'
import {
  checkPassword,
  type LocalUser,
  LocalUsers,
  LocalUsersError,
  type UserDirectory,
} from '../auth/provider/local-users.ts'
import { StoredUsers } from '../auth/provider/stored-users.ts'
import { SealError } from '../auth/seal.ts'
import { Secrets } from '../auth/secrets.ts'
import { type Argument, type Context, defineCommand, type Options, printed } from '../cli/command.ts'
import { confirmLoss, yesOption } from '../cli/confirm.ts'
import { readPassword } from '../cli/connect/password.ts'
import { Failure, UsageError } from '../cli/line/usage.ts'
import type { OutputColumn } from '../cli/output/output.ts'
import { administrator, readConnection } from '../control-plane/connection.ts'
import { becomeOwner } from '../control-plane/data-folder.ts'
import { databaseIn, isShared, storeAddressFor } from '../control-plane/store-place.ts'
import { isAlive } from '../platform/is-alive.ts'
import { openCollections } from '../store/records/collections.ts'
import { StoreError } from '../store/store.ts'
import { withStore } from './data.ts'
import { type DataPlace, dataPlaceOf, placeOptions } from './options.ts'

const email = { value: 'EMAIL', description: 'email address of the user', required: true } as const satisfies Argument

const passwordOption = {
  'password-stdin': { type: 'boolean', description: 'Read the password from standard input' },
} as const satisfies Options

const add = defineCommand({
  description:
    'Adds a user to the built-in identity provider. Run it on the machine of the server, which needs no restart.',
  arguments: { email },
  options: {
    admin: { type: 'boolean', description: 'Make the user an administrator' },
    ...passwordOption,
    ...placeOptions,
  },
  examples: [
    { line: 'svc3 server users add ada@example.com', does: 'Add a user; asks for the password' },
    {
      line: 'svc3 server users add grace@example.com --admin --password-stdin < password.txt',
      does: 'Add an administrator with the password from a file',
    },
  ],
  async run(context, { args, options }) {
    const password = await newPassword(context, options['password-stdin'])
    return edit(context, dataPlaceOf(context.host, options), async (users) => {
      const { email, admin } = await users.add(args.email, { admin: options.admin, password })
      return `User ${email} added${admin ? ' as an administrator' : ''}.\n`
    })
  },
})

const columns: readonly OutputColumn<Pick<LocalUser, 'email' | 'admin' | 'createdAt'>>[] = [
  { header: 'EMAIL', cell: ({ email }) => email },
  { header: 'ROLE', cell: ({ admin }) => (admin ? 'administrator' : 'user') },
  { header: 'CREATED', cell: ({ createdAt }) => ({ time: createdAt }) },
]

const list = defineCommand({
  description: 'Lists the users of the built-in identity provider.',
  arguments: {},
  options: { ...placeOptions, ...printed },
  examples: [{ line: 'svc3 server users list', does: 'List all users' }],
  run: (context, { options }) =>
    edit(context, dataPlaceOf(context.host, options), async (users) => {
      // Each field by name: the hash of the password is not for the answer.
      const listed = users.list().map(({ email, admin, createdAt }) => ({ email, admin, createdAt }))
      await context.print(listed, columns, 'No users. Add one with svc3 server users add EMAIL')
      return ''
    }),
})

const remove = defineCommand({
  description: 'Removes a user from the built-in identity provider. Their tokens stop working within seconds.',
  arguments: { email },
  options: { ...yesOption, ...placeOptions },
  examples: [{ line: 'svc3 server users remove ada@example.com', does: 'Remove a user and their tokens' }],
  async run(context, { args, options }) {
    await confirmLoss(context, {
      yes: options.yes,
      question: () => `Remove user ${args.email}? Their password is lost, and their tokens stop working.`,
      refused: 'Nothing removed',
    })
    return edit(context, dataPlaceOf(context.host, options), async (users) => {
      const { email } = await users.remove(args.email)
      return `User ${email} removed. Their tokens no longer work.\n`
    })
  },
})

const reset = defineCommand({
  description: 'Sets a new password for a user of the built-in identity provider and logs them out everywhere.',
  arguments: { email },
  options: { ...passwordOption, ...placeOptions },
  examples: [{ line: 'svc3 server users reset ada@example.com', does: 'Set a new password; asks for it' }],
  async run(context, { args, options }) {
    const password = await newPassword(context, options['password-stdin'])
    const place = dataPlaceOf(context.host, options)
    return edit(context, place, async (users) => {
      const before = (await readConnection(place.dataDir))?.adminToken
      const { email } = await users.reset(args.email, password)
      if (before !== undefined && email.toLowerCase() === administrator) await tokenRenewed(place.dataDir, before)
      return `Password of ${email} changed.\n`
    })
  },
})

/** Whoever types it need not type it again before it is refused. */
function mustBeLong(password: string): void {
  try {
    checkPassword(password)
  } catch (error) {
    if (error instanceof LocalUsersError) throw new Failure(error.message, error.hint)
    throw error
  }
}

/** Asked for twice on a terminal, because nobody sees what is typed. */
async function newPassword(context: Context, fromStdin: boolean): Promise<string> {
  const { isTerminal } = context.host.stdin
  if (!isTerminal && !fromStdin)
    throw new UsageError('A password is required', 'Use --password-stdin to read it from a pipe or a file')
  const password = await readPassword(context, 'New password: ', { check: mustBeLong })
  if (isTerminal && (await readPassword(context, 'Repeat the password: ')) !== password)
    throw new UsageError('The passwords do not match', 'Nothing was changed; try again')
  return password
}

/** Does the work on the users of the service, and prints what it says. */
async function edit(
  { host }: Context,
  { dataDir, storeAddress }: DataPlace,
  work: (users: UserDirectory) => Promise<string>,
): Promise<number> {
  becomeOwner(dataDir)
  try {
    const address = await storeAddressFor(dataDir, storeAddress)
    if (!isShared(address) && !fs.existsSync(databaseIn(dataDir)))
      throw new Failure(
        `${dataDir} is not the data folder of a server`,
        'Specify it with --data DIR, or start the server once',
      )
    host.stdout.write(
      await (isShared(address) ? withStoredUsers(dataDir, address, work) : work(new LocalUsers(dataDir))),
    )
    return 0
  } catch (error) {
    if (error instanceof LocalUsersError) throw new Failure(error.message, error.hint)
    if (error instanceof StoreError || error instanceof KeyringError || error instanceof SealError)
      throw new Failure(error.message, 'Nothing was changed. This needs the store of the server and its master key')
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EROFS' || code === 'ENOSPC')
      throw new Failure(`Cannot write the users in ${dataDir} (${code})`, 'Run this as the user that runs the server')
    throw error
  }
}

/** Where servers share a store: they all see the change at once. */
const withStoredUsers = (
  dataDir: string,
  address: string,
  work: (users: UserDirectory) => Promise<string>,
): Promise<string> =>
  withStore(address, async (store) => {
    await using collections = await openCollections(store)
    // Only a server makes a key: without any sealed record there is nothing that tells a wrong one from the right one.
    if (collections.signingKeys.list().length === 0)
      throw new LocalUsersError(`No server has run on ${address} yet`, 'Start one, then try again')
    const secrets = new Secrets(await loadKeyring(takeKeySource(dataDir, { ...process.env }), false))
    for (const { key, value } of collections.signingKeys.list()) secrets.open(key, value)
    return await work(new StoredUsers(collections.users, secrets))
  })

const renewalTimeoutMs = 20_000

/** Until the next command on this machine has a token again that counts: `svc3 dev` notices the change by itself. */
async function tokenRenewed(dataDir: string, before: string): Promise<void> {
  for (const end = performance.now() + renewalTimeoutMs; performance.now() < end; await sleep(50)) {
    const now = await readConnection(dataDir)
    if (now?.adminToken !== before || !isAlive(now.pid)) return
  }
}

export const commands = { list, add, remove, reset }
