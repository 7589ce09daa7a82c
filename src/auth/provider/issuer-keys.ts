// The secrets of the built-in provider: the key that signs ID tokens, the keys of its cookies, and the key that hashes ids
// for the store. They are in one sealed record, which all servers of a cluster share.
import { createHmac, generateKeyPairSync, randomBytes } from 'node:crypto'
import type { JWK } from 'jose'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Collection } from '../../store/collection.ts'
import type { IssuerKeysRecord } from '../../store/records/collections.ts'
import { isFault } from '../../store/store.ts'
import type { Secrets } from '../secrets.ts'

export interface IssuerKeys {
  /** The private key. */
  readonly signing: JWK
  readonly publicKey: JWK
  readonly cookies: readonly string[]
  /** Hashes an id for the store with a secret key, so that not even a short code can be guessed from it. */
  hide(kind: string, id: string): string
}

interface StoredKeys {
  readonly signing: JWK
  readonly cookies: readonly string[]
  readonly hiding: string
}

const name = 'current'

/** Loads the keys, and creates them if there are none. */
export async function loadIssuerKeys(
  collection: Collection<IssuerKeysRecord>,
  secrets: Secrets,
  clock: Clock,
): Promise<IssuerKeys> {
  if (!collection.get('', name)) await makeKeys(collection, secrets, clock)
  const entry = collection.get('', name)
  if (!entry) throw new Error('there are no issuer keys although they were just made')
  const { signing, cookies, hiding } = JSON.parse(secrets.open(entry.key, entry.value)) as StoredKeys
  const { d: _, ...publicKey } = signing
  return {
    signing,
    publicKey,
    cookies,
    hide: (kind, id) =>
      createHmac('sha256', hiding)
        .update(JSON.stringify([kind, id]))
        .digest('base64url'),
  }
}

async function makeKeys(collection: Collection<IssuerKeysRecord>, secrets: Secrets, clock: Clock): Promise<void> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const about = { kid: randomBytes(8).toString('hex'), alg: 'ES256', use: 'sig' }
  const kept: StoredKeys = {
    signing: { ...privateKey.export({ format: 'jwk' }), ...about },
    cookies: [randomBytes(32).toString('base64url')],
    hiding: randomBytes(32).toString('base64url'),
  }
  const fields = { createdAt: timestamp(clock.now()) }
  try {
    const key = collection.key('', name)
    await secrets.sealing((protect) => collection.create('', name, protect(key, fields, JSON.stringify(kept))))
  } catch (error) {
    // Another server was first.
    if (!isFault(error, 'AlreadyExists')) throw error
  }
}
