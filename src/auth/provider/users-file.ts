// Imports users.json, which held the users of a server on SQLite before 3.0.0-alpha.30, into the store.
import fs from 'node:fs'
import path from 'node:path'
import { syncFolder } from '../../platform/files.ts'
import { type LocalUser, type UserDirectory, UsersError } from './users.ts'

const usersFile = 'users.json'

/**
 * Imports the file of the data folder once, with uids and hashes, so that passwords and tokens stay valid. While it is
 * imported it has another name, so that a crash in between resumes the import even though the store already has users.
 * Returns how many users were imported, or 'unused' if the store had users before.
 */
export async function importUsers(dataFolder: string, users: UserDirectory): Promise<number | 'unused' | undefined> {
  const file = path.join(dataFolder, usersFile)
  const importing = `${file}.importing`
  if (!fs.existsSync(importing)) {
    if (!fs.existsSync(file)) return undefined
    if (!users.isEmpty) return 'unused'
    readUsers(file)
    fs.renameSync(file, importing)
    await syncFolder(dataFolder)
  }
  const found = readUsers(importing)
  for (const user of found) await users.put(user)
  fs.renameSync(importing, `${file}.imported`)
  await syncFolder(dataFolder)
  return found.length
}

function readUsers(file: string): readonly LocalUser[] {
  const broken = new UsersError(`${file} is not a valid list of users`, 'Correct it, or restore it from a backup')
  const text = fs.readFileSync(file, 'utf8')
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
