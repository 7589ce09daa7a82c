// The users of the built-in provider: a file beside the data, edited on the server's own machine and never through the
// API. A running server notices an edit within a second. Where servers share a store they are there: stored-users.ts.
import { createHash, randomUUID } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, systemClock, timestamp } from '../../platform/clock.ts'
import { writeFileAtomically } from '../../platform/files.ts'
import { LockedError, withLockFile } from '../../platform/lock-file.ts'
import { userNameOf } from '../../rules/names.ts'
import { hashPassword, matches, type PasswordHash, unknownPassword } from './passwords.ts'

export interface LocalUser {
  /** Made anew when a user of the same e-mail is added again: old tokens do not come back to life. */
  readonly uid: string
  readonly email: string
  readonly admin: boolean
  readonly scrypt: PasswordHash
  readonly createdAt: string
}

/** Wherever they are kept. */
export type UserDirectory = Pick<
  LocalUsers,
  'list' | 'isCurrent' | 'byAccountId' | 'verify' | 'add' | 'remove' | 'reset'
>

export class LocalUsersError extends Error {
  override readonly name = 'LocalUsersError'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

/** In the data folder. */
export const usersFile = 'users.json'
const minPasswordLength = 8
const lookAgainMs = 1_000

export class LocalUsers {
  readonly #file: string
  readonly #clock: Clock
  #users: readonly LocalUser[] = []
  #accounts = new Set<string>()
  #seen = ''
  #lookedAtMs = Number.NEGATIVE_INFINITY
  /** Of wrong passwords for nobody, so that they take as long as for somebody. */
  readonly #nobody: PasswordHash = unknownPassword()

  constructor(dataFolder: string, clock: Clock = systemClock) {
    this.#file = path.join(dataFolder, usersFile)
    this.#clock = clock
  }

  list(): readonly LocalUser[] {
    this.#look(true)
    return this.#users
  }

  /** Whether that account is still there, with the same password. Costs a look at the file at most once a second. */
  isCurrent(accountId: string): boolean {
    this.#look(false)
    return this.#accounts.has(accountId)
  }

  /** The user of an account id that `accountIdOf` made, unless removed or given another password since. */
  byAccountId(accountId: string): LocalUser | undefined {
    this.#look(true)
    return this.#users.find((user) => accountIdOf(user) === accountId)
  }

  /** The user when e-mail and password are right. Takes the same time for nobody. Throws `PasswordsBusy`. */
  async verify(email: string, password: string): Promise<LocalUser | undefined> {
    this.#look(true)
    const user = this.#users.find((each) => each.email === userNameOf(email.trim()))
    const isRight = await matches(password, user?.scrypt ?? this.#nobody)
    return isRight ? user : undefined
  }

  async add(email: string, options: { readonly admin: boolean; readonly password: string }): Promise<LocalUser> {
    const name = checkedEmail(email)
    checkPassword(options.password)
    const { admin, password } = options
    const createdAt = timestamp(this.#clock.now())
    const user = { uid: randomUUID(), email: name, admin, scrypt: await hashPassword(password), createdAt }
    await this.#edit((users) => {
      if (users.some((each) => each.email === name)) throw userExists(name)
      return [...users, user]
    })
    return user
  }

  async remove(email: string): Promise<LocalUser> {
    return this.#change(email, () => undefined)
  }

  /** A new password. Ends the user's logins and the tokens that they had. */
  async reset(email: string, password: string): Promise<LocalUser> {
    checkPassword(password)
    const hash = await hashPassword(password)
    return this.#change(email, (user) => ({ ...user, scrypt: hash }))
  }

  async #change(email: string, change: (user: LocalUser) => LocalUser | undefined): Promise<LocalUser> {
    const name = email.toLowerCase()
    let changed: LocalUser | undefined
    await this.#edit((users) => {
      changed = users.find((user) => user.email === name)
      if (!changed) throw userNotFound(name)
      return users.flatMap((user) => (user === changed ? (change(user) ?? []) : user))
    })
    return changed as unknown as LocalUser
  }

  /** One edit at a time, also between processes, on what is in the file now. */
  async #edit(change: (users: readonly LocalUser[]) => readonly LocalUser[]): Promise<void> {
    const patienceEnds = performance.now() + 5_000
    for (;;) {
      try {
        return await withLockFile(`${this.#file}.lock`, async () => {
          const users = change(this.list())
          await writeFileAtomically(this.#file, `${JSON.stringify({ users }, null, 2)}\n`, { mode: 0o600 })
          this.#look(true)
        })
      } catch (error) {
        if (!(error instanceof LockedError)) throw error
        if (performance.now() > patienceEnds)
          throw new LocalUsersError(`Process ${error.pid} is editing ${this.#file}`, 'Try again in a moment')
        await sleep(50)
      }
    }
  }

  /** Reads the file when it is another one than the last time. */
  #look(now: boolean): void {
    const atMs = performance.now()
    if (!now && atMs - this.#lookedAtMs < lookAgainMs) return
    this.#lookedAtMs = atMs
    const stat = fs.statSync(this.#file, { bigint: true, throwIfNoEntry: false })
    const seen = stat ? `${stat.ino} ${stat.mtimeNs} ${stat.size}` : ''
    if (seen === this.#seen) return
    try {
      this.#users = stat ? parseUsers(fs.readFileSync(this.#file, 'utf8'), this.#file) : []
    } catch (error) {
      // While somebody corrects a broken file, those who were there stay.
      if (now || !(error instanceof LocalUsersError)) throw error
      return
    }
    this.#accounts = new Set(this.#users.map(accountIdOf))
    this.#seen = seen
  }
}

/** Changes with the password, so that a reset ends every login that began before it. */
export const accountIdOf = ({ uid, scrypt }: LocalUser): string =>
  `${uid}.${createHash('sha256').update(scrypt.salt).digest('hex').slice(0, 12)}`

function parseUsers(text: string, file: string): readonly LocalUser[] {
  const broken = new LocalUsersError(`${file} is not a valid list of users`, 'Correct it, or restore it from a backup')
  let users: unknown
  try {
    users = (JSON.parse(text) as { users?: unknown } | null)?.users
  } catch {
    throw broken
  }
  if (!Array.isArray(users) || !users.every(isUser)) throw broken
  return users
}

function isUser(value: unknown): value is LocalUser {
  const user = value as Partial<LocalUser> | null
  const texts = [user?.uid, user?.email, user?.createdAt, user?.scrypt?.salt, user?.scrypt?.hash]
  const numbers = [user?.scrypt?.N, user?.scrypt?.r, user?.scrypt?.p]
  return (
    texts.every((text) => typeof text === 'string' && text !== '') &&
    numbers.every((number) => Number.isInteger(number)) &&
    typeof user?.admin === 'boolean'
  )
}

export const userExists = (name: string): LocalUsersError =>
  new LocalUsersError(`User ${name} already exists`, `Run svc3 server users reset ${name} to set a new password`)

export const userNotFound = (name: string): LocalUsersError =>
  new LocalUsersError(`User ${name} not found`, 'Run svc3 server users list to see all users')

export function checkedEmail(email: string): string {
  const name = userNameOf(email)
  if (name !== undefined) return name
  throw new LocalUsersError(`Invalid email address "${email}"`, 'Use an address such as ada@example.com')
}

export function checkPassword(password: string): void {
  if (password.length < minPasswordLength)
    throw new LocalUsersError('The password is too short', `Use at least ${minPasswordLength} characters`)
}
