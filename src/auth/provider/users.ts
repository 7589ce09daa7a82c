// The users of the built-in identity provider: one sealed record each. They are edited by `svc3 server users` on a
// server's machine, never through the API.
import { createHash, randomUUID } from 'node:crypto'
import { type Clock, systemClock, timestamp } from '../../platform/clock.ts'
import { userNameOf } from '../../rules/names.ts'
import type { Collection } from '../../store/collection.ts'
import type { UserRecord } from '../../store/records/collections.ts'
import { type Entry, isFault } from '../../store/store.ts'
import type { Secrets } from '../secrets.ts'
import { hashPassword, matches, type PasswordHash, unknownPassword } from './passwords.ts'

export interface LocalUser {
  /** New when a deleted user is added again, so that tokens of the deleted one stay invalid. */
  readonly uid: string
  readonly email: string
  readonly admin: boolean
  readonly scrypt: PasswordHash
  readonly createdAt: string
}

/** What commands print of a user: without the hash of the password. */
export type UserView = Pick<LocalUser, 'email' | 'admin' | 'createdAt'>

/** Carries hashes in place of passwords, because a request to a running server passes through a file. */
export type UserEdit =
  | { readonly verb: 'list' }
  | { readonly verb: 'add'; readonly email: string; readonly admin: boolean; readonly password: PasswordHash }
  | { readonly verb: 'remove'; readonly email: string }
  | { readonly verb: 'reset'; readonly email: string; readonly password: PasswordHash }
/** For a token of an administrator: by default, of the oldest. */
export type TokenRequest = { readonly verb: 'token'; readonly email: string | undefined }

/** The users that the edit was about, or why it was refused. */
export type UserEditResult =
  | { readonly users: readonly UserView[]; readonly token?: string }
  | { readonly refused: { readonly message: string; readonly hint: string } }

export class UsersError extends Error {
  override readonly name = 'UsersError'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

interface UserDirectoryOptions {
  readonly clock?: Clock
  /** Called for a record that does not decrypt; it counts as no user. */
  readonly failed?: (key: string, error: unknown) => void
}

const minPasswordLength = 8

export class UserDirectory {
  readonly #collection: Collection<UserRecord>
  readonly #secrets: Secrets
  readonly #clock: Clock
  readonly #failed: (key: string, error: unknown) => void
  /** By record key; decrypted once per revision. */
  readonly #users = new Map<string, { readonly rev: string; readonly user: LocalUser | undefined }>()
  /** Checked when the e-mail is unknown, so that the response takes as long as for a wrong password. */
  readonly #unknown: PasswordHash = unknownPassword()
  #accounts = new Set<string>()

  constructor(collection: Collection<UserRecord>, secrets: Secrets, options: UserDirectoryOptions = {}) {
    this.#collection = collection
    this.#secrets = secrets
    this.#clock = options.clock ?? systemClock
    this.#failed = options.failed ?? (() => undefined)
    this.#refresh()
    collection.view.subscribe(() => this.#refresh())
  }

  /** Also false when no record decrypts. */
  get isEmpty(): boolean {
    return this.#users.size === 0
  }

  /** Oldest first. */
  list(): readonly LocalUser[] {
    const users = [...this.#users.values()].flatMap(({ user }) => user ?? [])
    return users.sort((a, b) =>
      a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.email < b.email) ? -1 : 1,
    )
  }

  /** Whether the account exists with the same password as when `accountIdOf` made its id. */
  isCurrent(accountId: string): boolean {
    return this.#accounts.has(accountId)
  }

  byAccountId(accountId: string): LocalUser | undefined {
    return this.list().find((user) => accountIdOf(user) === accountId)
  }

  /** Returns the user if the password is right. Takes equally long for an unknown user. Throws `PasswordsBusy`. */
  async verify(email: string, password: string): Promise<LocalUser | undefined> {
    const name = userNameOf(email.trim())
    const user = this.list().find((each) => each.email === name)
    const isRight = await matches(password, user?.scrypt ?? this.#unknown)
    return isRight ? user : undefined
  }

  async add(
    email: string,
    { admin, password }: { readonly admin: boolean; readonly password: string | PasswordHash },
  ): Promise<LocalUser> {
    const name = userNameOf(email)
    if (name === undefined)
      throw new UsersError(`Invalid email address "${email}"`, 'Use an address such as ada@example.com')
    const scrypt = await hashOf(password)
    const user = { uid: randomUUID(), email: name, admin, scrypt, createdAt: timestamp(this.#clock.now()) }
    if (await this.put(user)) return user
    throw new UsersError(`User ${name} already exists`, `Run svc3 server users reset ${name} to set a new password`)
  }

  /** Stores the user unchanged. Returns false if the e-mail is taken. */
  async put(user: LocalUser): Promise<boolean> {
    const key = this.#collection.key('', user.email)
    try {
      await this.#secrets.sealing((protect) =>
        this.#collection.create('', user.email, this.#record(protect, key, user)),
      )
      return true
    } catch (error) {
      if (!isFault(error, 'AlreadyExists')) throw error
      return false
    }
  }

  async remove(email: string): Promise<LocalUser> {
    return this.#change(email, () => null)
  }

  /** Sets a new password, which ends the user's logins and their tokens. */
  async reset(email: string, password: string | PasswordHash): Promise<LocalUser> {
    const scrypt = await hashOf(password)
    return this.#secrets.sealing((protect) =>
      this.#change(email, (key, user) => this.#record(protect, key, { ...user, scrypt })),
    )
  }

  /** Returns the user as it was before. */
  async #change(email: string, next: (key: string, user: LocalUser) => UserRecord | null): Promise<LocalUser> {
    const name = email.toLowerCase()
    const key = this.#collection.key('', name)
    let user: LocalUser | undefined
    await this.#collection.change(key, (record) => {
      user = record && this.#users.get(key)?.user
      if (!user) throw new UsersError(`User ${name} not found`, 'Run svc3 server users list to see all users')
      return next(key, user)
    })
    return user as unknown as LocalUser
  }

  #record(
    protect: <F extends object>(key: string, fields: F, secret: string) => F & { readonly sealed: string },
    key: string,
    { scrypt, ...fields }: LocalUser,
  ): UserRecord {
    return protect(key, fields, JSON.stringify(scrypt))
  }

  #refresh(): void {
    const entries = this.#collection.list()
    const keys = new Set(entries.map(({ key }) => key))
    for (const key of this.#users.keys()) if (!keys.has(key)) this.#users.delete(key)
    for (const entry of entries)
      if (this.#users.get(entry.key)?.rev !== entry.rev)
        this.#users.set(entry.key, { rev: entry.rev, user: this.#open(entry) })
    this.#accounts = new Set(this.list().map(accountIdOf))
  }

  #open({ key, value }: Entry<UserRecord>): LocalUser | undefined {
    try {
      const { sealed: _, ...fields } = value
      return { ...fields, scrypt: JSON.parse(this.#secrets.open(key, value)) as PasswordHash }
    } catch (error) {
      this.#failed(key, error)
      return undefined
    }
  }
}

/** Applies an edit of `svc3 server users`, in the command itself or in the running server. */
export async function editUsers(users: UserDirectory, edit: UserEdit): Promise<UserEditResult> {
  try {
    return { users: (await applied(users, edit)).map(({ email, admin, createdAt }) => ({ email, admin, createdAt })) }
  } catch (error) {
    if (!(error instanceof UsersError)) throw error
    return { refused: { message: error.message, hint: error.hint } }
  }
}

async function applied(users: UserDirectory, edit: UserEdit): Promise<readonly LocalUser[]> {
  switch (edit.verb) {
    case 'list':
      return users.list()
    case 'add':
      return [await users.add(edit.email, edit)]
    case 'remove':
      return [await users.remove(edit.email)]
    case 'reset':
      return [await users.reset(edit.email, edit.password)]
  }
}

/** Changes with the password, so that a reset ends every login that began before it. */
export const accountIdOf = ({ uid, scrypt }: LocalUser): string =>
  `${uid}.${createHash('sha256').update(scrypt.salt).digest('hex').slice(0, 12)}`

async function hashOf(password: string | PasswordHash): Promise<PasswordHash> {
  if (typeof password !== 'string') return password
  checkPassword(password)
  return hashPassword(password)
}

export function checkPassword(password: string): void {
  if (password.length < minPasswordLength)
    throw new UsersError('The password is too short', `Use at least ${minPasswordLength} characters`)
}
