// The keys that sign tokens. They live in the store, sealed, so that every server of a cluster shares them and a
// restart keeps tokens valid. The newest signs; all of them verify.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { errors } from 'jose'
import { type Clock, timestamp } from '../platform/clock.ts'
import type { Collection } from '../store/collection.ts'
import type { SigningKeyRecord } from '../store/collections.ts'
import { isFault } from '../store/store.ts'
import type { Secrets } from './secrets.ts'

export interface SigningKeys {
  readonly active: { readonly kid: string; readonly privateKey: KeyObject }
  /** Throws jose's error for a key that is not ours, so that the verifier refuses the token. */
  publicKey(kid: string | undefined): KeyObject
  /** A secret for another purpose, the same on every server and after every restart. */
  derive(purpose: string): Buffer
}

/** Loads the keys, making the first one where there is none. */
export async function loadSigningKeys(
  collection: Collection<SigningKeyRecord>,
  secrets: Secrets,
  clock: Clock,
): Promise<SigningKeys> {
  if (collection.list().length === 0) await makeKey(collection, secrets, clock)
  const pairs = collection
    .list()
    .map((entry) => ({
      kid: entry.value.kid,
      createdAt: entry.value.createdAt,
      pem: secrets.open(entry.key, entry.value),
    }))
    .map(({ kid, createdAt, pem }) => ({ kid, createdAt, privateKey: createPrivateKey(pem) }))
    .map((pair) => ({ ...pair, publicKey: createPublicKey(pair.privateKey) }))
    .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1))
  const [active] = pairs
  if (!active) throw new Error('there is no signing key although one was just made')
  const oldest = pairs.at(-1) ?? active
  const byId = new Map(pairs.map((pair) => [pair.kid, pair.publicKey]))
  return {
    active,
    derive: (purpose) => {
      const material = oldest.privateKey.export({ type: 'pkcs8', format: 'der' })
      return Buffer.from(hkdfSync('sha256', material, '', `svc3 ${purpose}`, 32))
    },
    publicKey: (kid) => {
      const key = kid === undefined ? undefined : byId.get(kid)
      if (!key) throw new errors.JWKSNoMatchingKey()
      return key
    },
  }
}

async function makeKey(collection: Collection<SigningKeyRecord>, secrets: Secrets, clock: Clock): Promise<void> {
  const kid = randomBytes(8).toString('hex')
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const fields = { kid, createdAt: timestamp(clock.now()) }
  try {
    // One fixed name for the first key: of two servers that start at once, one makes it.
    const key = collection.key('', 'first')
    await secrets.sealing((protect) => collection.create('', 'first', protect(key, fields, pem)))
  } catch (error) {
    if (!isFault(error, 'AlreadyExists')) throw error
  }
}
