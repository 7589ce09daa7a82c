// The users of the built-in provider where servers share a store: one sealed record each, so that every server knows the
// same ones, and at once. Edited on a server's own machine and never through the API, like the file.
import { randomUUID } from 'node:crypto'
import { type Clock, systemClock, timestamp } from '../../platform/clock.ts'
import { userNameOf } from '../../rules/names.ts'
import type { Collection } from '../../store/collection.ts'
import type { UserRecord } from '../../store/records/collections.ts'
import { type Entry, isFault } from '../../store/store.ts'
import type { Secrets } from '../secrets.ts'
import {
  accountIdOf,
  checkedEmail,
  checkPassword,
  type LocalUser,
  type UserDirectory,
  userExists,
  userNotFound,
} from './local-users.ts'
import { hashPassword, matches, type PasswordHash, unknownPassword } from './passwords.ts'

interface StoredUsersOptions {
  readonly clock?: Clock
  /** A record that does not open is nobody. */
  readonly failed?: (key: string, error: unknown) => void
}

export class StoredUsers implements UserDirectory {
  readonly #collection: Collection<UserRecord>
  readonly #secrets: Secrets
  readonly #clock: Clock
  readonly #failed: (key: string, error: unknown) => void
  readonly #users = new Map<string, { readonly rev: string; readonly user: LocalUser | undefined }>()
  readonly #nobody: PasswordHash = unknownPassword()
  #accounts = new Set<string>()

  constructor(collection: Collection<UserRecord>, secrets: Secrets, options: StoredUsersOptions = {}) {
    this.#collection = collection
    this.#secrets = secrets
    this.#clock = options.clock ?? systemClock
    this.#failed = options.failed ?? (() => undefined)
    this.#look()
    collection.view.subscribe(() => this.#look())
  }

  list(): readonly LocalUser[] {
    const users = [...this.#users.values()].flatMap(({ user }) => user ?? [])
    return users.sort((a, b) =>
      a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.email < b.email) ? -1 : 1,
    )
  }

  isCurrent(accountId: string): boolean {
    return this.#accounts.has(accountId)
  }

  byAccountId(accountId: string): LocalUser | undefined {
    return this.list().find((user) => accountIdOf(user) === accountId)
  }

  async verify(email: string, password: string): Promise<LocalUser | undefined> {
    const name = userNameOf(email.trim())
    const user = this.list().find((each) => each.email === name)
    const isRight = await matches(password, user?.scrypt ?? this.#nobody)
    return isRight ? user : undefined
  }

  async add(email: string, options: { readonly admin: boolean; readonly password: string }): Promise<LocalUser> {
    const name = checkedEmail(email)
    checkPassword(options.password)
    const { admin, password } = options
    const createdAt = timestamp(this.#clock.now())
    const user = { uid: randomUUID(), email: name, admin, scrypt: await hashPassword(password), createdAt }
    if (!(await this.put(user))) throw userExists(name)
    return user
  }

  /** As it is; false where there is one of that e-mail. */
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

  async reset(email: string, password: string): Promise<LocalUser> {
    checkPassword(password)
    const scrypt = await hashPassword(password)
    return this.#secrets.sealing((protect) =>
      this.#change(email, (key, user) => this.#record(protect, key, { ...user, scrypt })),
    )
  }

  /** Returns the user as it was. */
  async #change(email: string, next: (key: string, user: LocalUser) => UserRecord | null): Promise<LocalUser> {
    const name = email.toLowerCase()
    const key = this.#collection.key('', name)
    let user: LocalUser | undefined
    await this.#collection.change(key, (record) => {
      user = record && this.#users.get(key)?.user
      if (!user) throw userNotFound(name)
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

  #look(): void {
    const entries = this.#collection.list()
    const there = new Set(entries.map(({ key }) => key))
    for (const key of this.#users.keys()) if (!there.has(key)) this.#users.delete(key)
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
