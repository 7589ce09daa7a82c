// svc3 server users: edits the users of the built-in identity provider on the machine of a server.
import fs from 'node:fs'
import { KeyringError, loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { hashPassword, type PasswordHash } from '../auth/provider/passwords.ts'
import {
  checkPassword,
  editUsers,
  UserDirectory,
  type UserEdit,
  type UserEditResult,
  UsersError,
  type UserView,
} from '../auth/provider/users.ts'
import { importUsers } from '../auth/provider/users-file.ts'
import { SealError } from '../auth/seal.ts'
import { Secrets } from '../auth/secrets.ts'
import { type Argument, type Context, defineCommand, type Options, printed } from '../cli/command.ts'
import { confirmLoss, yesOption } from '../cli/confirm.ts'
import { readPassword } from '../cli/connect/password.ts'
import { Failure, UsageError } from '../cli/line/usage.ts'
import type { OutputColumn } from '../cli/output/output.ts'
import { becomeOwner, OperatorError } from '../control-plane/data-folder.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { databaseIn, isShared, storeAddressFor } from '../control-plane/store-place.ts'
import { openCollections } from '../store/records/collections.ts'
import { type Store, StoreError } from '../store/store.ts'
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
    const place = dataPlaceOf(context.host, options)
    const added = { verb: 'add', email: args.email, admin: options.admin, password } as const
    for (const { email, admin } of await edit(place, added))
      context.host.stdout.write(`User ${email} added${admin ? ' as an administrator' : ''}.\n`)
    return 0
  },
})

const columns: readonly OutputColumn<UserView>[] = [
  { header: 'EMAIL', cell: ({ email }) => email },
  { header: 'ROLE', cell: ({ admin }) => (admin ? 'administrator' : 'user') },
  { header: 'CREATED', cell: ({ createdAt }) => ({ time: createdAt }) },
]

const list = defineCommand({
  description: 'Lists the users of the built-in identity provider.',
  arguments: {},
  options: { ...placeOptions, ...printed },
  examples: [{ line: 'svc3 server users list', does: 'List all users' }],
  async run(context, { options }) {
    const users = await edit(dataPlaceOf(context.host, options), { verb: 'list' })
    await context.print(users, columns, 'No users. Add one with svc3 server users add EMAIL')
    return 0
  },
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
    const place = dataPlaceOf(context.host, options)
    for (const { email } of await edit(place, { verb: 'remove', email: args.email }))
      context.host.stdout.write(`User ${email} removed. Their tokens no longer work.\n`)
    return 0
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
    for (const { email } of await edit(place, { verb: 'reset', email: args.email, password }))
      context.host.stdout.write(`Password of ${email} changed.\n`)
    return 0
  },
})

/** Refuses a short password before it has to be repeated. */
function mustBeLong(password: string): void {
  try {
    checkPassword(password)
  } catch (error) {
    if (error instanceof UsersError) throw new Failure(error.message, error.hint)
    throw error
  }
}

/** Hashes what was typed, twice on a terminal, where it is not echoed. */
async function newPassword(context: Context, fromStdin: boolean): Promise<PasswordHash> {
  const { isTerminal } = context.host.stdin
  if (!isTerminal && !fromStdin)
    throw new UsageError('A password is required', 'Use --password-stdin to read it from a pipe or a file')
  const password = await readPassword(context, 'New password: ', { check: mustBeLong })
  if (isTerminal && (await readPassword(context, 'Repeat the password: ')) !== password)
    throw new UsageError('The passwords do not match', 'Nothing was changed; try again')
  return hashPassword(password)
}

const timeoutMs = 30_000

/** Edits the store itself where that is possible, otherwise has the running server do it, which has SQLite locked. */
async function edit({ dataDir, storeAddress }: DataPlace, edit: UserEdit): Promise<readonly UserView[]> {
  becomeOwner(dataDir)
  try {
    const address = await storeAddressFor(dataDir, storeAddress)
    if (!isShared(address) && !fs.existsSync(databaseIn(dataDir)))
      throw new Failure(
        `${dataDir} is not the data folder of a server`,
        'Specify it with --data DIR, or start the server once',
      )
    const result = await withStore(
      address,
      (store) => editStored(store, dataDir, address, edit),
      () => askServer(dataDir, { name: 'users', edit }, timeoutMs),
    )
    if ('refused' in result) throw new Failure(result.refused.message, result.refused.hint)
    return result.users
  } catch (error) {
    if (error instanceof UsersError) throw new Failure(error.message, error.hint)
    if (error instanceof OperatorError)
      throw new Failure(error.message, 'Check with svc3 server users list, then try again')
    if (error instanceof StoreError || error instanceof KeyringError || error instanceof SealError)
      throw new Failure(error.message, 'Nothing was changed. This needs the store of the server and its master key')
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EROFS' || code === 'ENOSPC')
      throw new Failure(`Cannot write the users in ${dataDir} (${code})`, 'Run this as the user that runs the server')
    throw error
  }
}

async function editStored(store: Store, dataDir: string, address: string, edit: UserEdit): Promise<UserEditResult> {
  await using collections = await openCollections(store)
  // Only a server makes a master key: without a sealed record nothing tells a wrong key from the right one.
  if (collections.signingKeys.list().length === 0)
    throw new UsersError(`No server has run on ${address} yet`, 'Start one, then try again')
  const secrets = new Secrets(await loadKeyring(takeKeySource(dataDir, { ...process.env }), false))
  for (const { key, value } of collections.signingKeys.list()) secrets.open(key, value)
  const users = new UserDirectory(collections.users, secrets)
  await importUsers(dataDir, users)
  return await editUsers(users, edit)
}

export const commands = { list, add, remove, reset }
