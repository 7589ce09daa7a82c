// Users of the built-in identity provider, in a store in memory.
import { randomBytes } from 'node:crypto'
import { makeKeyring } from '../../../src/auth/keyring.ts'
import { UserDirectory } from '../../../src/auth/provider/users.ts'
import { Secrets } from '../../../src/auth/secrets.ts'
import { openMemory } from '../../../src/store/memory.ts'
import { openCollections } from '../../../src/store/records/collections.ts'

export async function usersInMemory() {
  const collections = await openCollections(openMemory())
  const secrets = new Secrets(makeKeyring([randomBytes(32)]))
  const open = () => new UserDirectory(collections.users, secrets)
  return { users: open(), open, collection: collections.users }
}
