// svc3 server users and svc3 server token: edits the users of the built-in identity provider on the machine of a server,
// and creates tokens for administrators.
import fs from 'node:fs/promises'
import path from 'node:path'
import { hashPassword, type PasswordHash } from '../auth/provider/passwords.ts'
import {
  checkPassword,
  editUsers,
  type TokenRequest,
  UserDirectory,
  type UserEdit,
  type UserEditResult,
  UsersError,
  type UserView,
} from '../auth/provider/users.ts'
import { loadSigningKeys } from '../auth/signing-keys.ts'
import { createTokens } from '../auth/tokens.ts'
import { type Argument, type Context, defineCommand, type Options, printed } from '../cli/command.ts'
import { confirmLoss, yesOption } from '../cli/confirm.ts'
import { readPassword } from '../cli/connect/password.ts'
import { Failure, UsageError } from '../cli/line/usage.ts'
import type { OutputColumn } from '../cli/output/output.ts'
import { administrator, administratorToken } from '../control-plane/administrator.ts'
import { assertUsersMoved, becomeOwner } from '../control-plane/data-folder.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { systemClock } from '../platform/clock.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { parseSettings } from '../server/config/settings.ts'
import { openCollections } from '../store/records/collections.ts'
import type { Store } from '../store/store.ts'
import { explaining, openSecrets, withRecords } from './data.ts'
import { type DataLocation, dataLocationOf, dataOptions, fileOf } from './options.ts'

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
    ...dataOptions,
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
    const place = dataLocationOf(context.host, options)
    const added = { verb: 'add', email: args.email, admin: options.admin, password } as const
    for (const { email, admin } of (await edit(place, added)).users)
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
  options: { ...dataOptions, ...printed },
  examples: [{ line: 'svc3 server users list', does: 'List all users' }],
  async run(context, { options }) {
    const { users } = await edit(dataLocationOf(context.host, options), { verb: 'list' })
    await context.print(users, columns, 'No users. Add one with svc3 server users add EMAIL')
    return 0
  },
})

const remove = defineCommand({
  description: 'Removes a user from the built-in identity provider. Their tokens stop working within seconds.',
  arguments: { email },
  options: { ...yesOption, ...dataOptions },
  examples: [{ line: 'svc3 server users remove ada@example.com', does: 'Remove a user and their tokens' }],
  async run(context, { args, options }) {
    await confirmLoss(context, {
      yes: options.yes,
      question: () => `Remove user ${args.email}? Their password is lost, and their tokens stop working.`,
      refused: 'Nothing removed',
    })
    const place = dataLocationOf(context.host, options)
    for (const { email } of (await edit(place, { verb: 'remove', email: args.email })).users)
      context.host.stdout.write(`User ${email} removed. Their tokens no longer work.\n`)
    return 0
  },
})

const reset = defineCommand({
  description: 'Sets a new password for a user of the built-in identity provider and logs them out everywhere.',
  arguments: { email },
  options: { ...passwordOption, ...dataOptions },
  examples: [{ line: 'svc3 server users reset ada@example.com', does: 'Set a new password; asks for it' }],
  async run(context, { args, options }) {
    const password = await newPassword(context, options['password-stdin'])
    const place = dataLocationOf(context.host, options)
    for (const { email } of (await edit(place, { verb: 'reset', email: args.email, password })).users)
      context.host.stdout.write(`Password of ${email} changed.\n`)
    return 0
  },
})

/** Turns a refusal of the identity provider into a failure of the command. */
async function refusals<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof UsersError) throw new Failure(error.message, error.hint)
    throw error
  }
}

/** On a terminal the password is typed twice and not shown. Returns its hash. */
async function newPassword(context: Context, fromStdin: boolean): Promise<PasswordHash> {
  const { isTerminal } = context.host.stdin
  if (!isTerminal && !fromStdin)
    throw new UsageError('A password is required', 'Use --password-stdin to read it from a pipe or a file')
  const password = await refusals(() => readPassword(context, 'New password: ', { check: checkPassword }))
  if (isTerminal && (await readPassword(context, 'Repeat the password: ')) !== password)
    throw new UsageError('The passwords do not match', 'Nothing was changed; try again')
  return hashPassword(password)
}

const serverTimeoutMs = 30_000

export const tokenCommand = defineCommand({
  description:
    'Prints a token for an administrator, valid for an hour. Run it on the machine of the server; it needs no browser. If there are no\n' +
    `users, ${administrator} is created. An event records the token.`,
  arguments: {},
  options: {
    user: { type: 'string', short: 'u', value: 'EMAIL', defaultText: 'the oldest', description: 'The administrator' },
    output: { type: 'string', value: 'FILE', description: 'Write to a file that only you can read' },
    ...dataOptions,
  },
  examples: [
    { line: 'svc3 server token | svc3 user set-token -', does: 'Log in on the machine of a new server' },
    { line: 'svc3 server token --user ada@example.com --output token.txt', does: 'Write the token to a file' },
  ],
  run: ({ host }, { options: { user: email, output, ...options } }) =>
    explaining('No token was written', async () => {
      // Opened before `edit` continues as the owner of the data folder, who may not write there.
      const file = output === undefined ? undefined : await fs.open(fileOf(host, output), 'a', 0o600)
      await file?.chmod(0o600)
      const { token } = await edit(dataLocationOf(host, options), { verb: 'token', email })
      await file?.truncate()
      await (file?.appendFile(`${token}\n`) ?? host.stdout.write(`${token}\n`))
      await file?.close()
      return 0
    }),
})

function edit(data: DataLocation, edit: UserEdit | TokenRequest) {
  const { dataDir } = data
  becomeOwner(dataDir)
  return explaining('Check with svc3 server users list, then try again', async () => {
    const result = await refusals(() =>
      withRecords(
        data,
        (store) => editStored(store, dataDir, edit),
        () => askServer(dataDir, { name: 'users', edit }, serverTimeoutMs),
      ),
    )
    if ('refused' in result) throw new Failure(result.refused.message, result.refused.hint)
    return result
  })
}

async function editStored(store: Store, dataDir: string, edit: UserEdit | TokenRequest): Promise<UserEditResult> {
  await using collections = await openCollections(store)
  // Only a server makes a master key: without a sealed record nothing tells a wrong key from the right one.
  if (collections.signingKeys.list().length === 0)
    throw new UsersError('No server has run on these records yet', 'Start one, then try again')
  const secrets = await openSecrets(dataDir)
  for (const { key, value } of collections.signingKeys.list()) secrets.open(key, value)
  const users = new UserDirectory(collections.users, secrets)
  assertUsersMoved(dataDir, users)
  if (edit.verb !== 'token') return await editUsers(users, edit)
  const { auth } = parseSettings(await readFileIfPresent(path.join(dataDir, 'config.json')))
  using keys = await loadSigningKeys(collections.signingKeys, secrets, systemClock)
  const tokens = createTokens(keys, systemClock, () => true)
  return await administratorToken(collections.events, tokens, auth.issuer === undefined ? users : undefined, edit.email)
}

export const commands = { list, add, remove, reset }
