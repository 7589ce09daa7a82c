// The keys that sign tokens. They live in the store, sealed, and are followed there: every server of a cluster has the same
// ones, and a new one without a restart. One signs; all of them verify until the last token of each has ended.
import { generateKeyPairSync, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { errors } from 'jose'
import { type Clock, timestamp } from '../platform/clock.ts'
import type { Collection } from '../store/collection.ts'
import type { SigningKeyRecord } from '../store/records/collections.ts'
import { type Entry, ignoreLost, isFault } from '../store/store.ts'
import type { Secrets } from './secrets.ts'
import { endOf, forEver, hasEnded, openKeys, type SigningKey, shortTokenMs } from './signing-key.ts'

export interface SigningKeys extends Disposable {
  /** The one that signs now. */
  readonly active: SigningKey
  /** The one that signs a token that is good until then (Infinity: for ever), once it is sure to be kept as long. */
  signer(untilMs: number): Promise<SigningKey>
  /** Throws jose's error for a key that is not ours, so that the verifier refuses the token. */
  publicKey(kid: string | undefined): KeyObject
  /** Grows when a key goes: what was verified by it counts no more. */
  readonly removals: number
  /** A secret for another purpose, the same on every server and after every restart. Ask each time: revoking changes it. */
  derive(purpose: string): Buffer
  /** A new key. It signs after a minute, when every server knows it; at once where the others end with all their tokens. */
  rotate(options?: { readonly isRevoking?: boolean }): Promise<Rotated>
  /** What is to be done now and then, by one server: a new key when the last one is old; those go whose tokens have ended. */
  tend(): Promise<void>
}

export interface Rotated {
  readonly kid: string
  readonly signsFrom: string
  /** Keys that still verify what they have signed. */
  readonly older: number
  readonly revoked: number
}

/** A key is published for so long before it signs. */
const publishedMs = 60_000
const rotateAfterMs = 90 * 24 * 3_600_000
/** Tokens that last are rarely the last ones: their key is kept for longer than asked, so that few of them write. */
const slackMs = 30 * 24 * 3_600_000
const firstName = 'first'
const deriveName = 'derive'

/** Follows the keys, making the first ones where there are none. */
export async function loadSigningKeys(
  collection: Collection<SigningKeyRecord>,
  secrets: Secrets,
  clock: Clock,
  failed: (key: string, error: unknown) => void = () => undefined,
): Promise<SigningKeys> {
  if (signingOf(collection).length === 0) await add(collection, secrets, firstName, newPem(), firstFields(clock))
  // Apart from the keys that come and go. Data of before that have a copy of their first key here, until they are revoked.
  if (!collection.get('', deriveName))
    await add(collection, secrets, deriveName, newPem(), { ...firstFields(clock), use: 'derive' })
  const [made] = openKeys(rootOf(collection), secrets)
  if (!made) throw new Error('there is no key to derive secrets from although one was just made')
  let root = made
  const derived = new Map<string, Buffer>()

  let keys = openKeys(signingOf(collection), secrets)
  let removals = 0
  const unsubscribe = collection.view.subscribe(() => {
    const before = keys
    keys = openKeys(signingOf(collection), secrets, before, failed)
    if (before.some(({ kid }) => !keys.some((key) => key.kid === kid))) removals += 1
    const [next = root] = openKeys(rootOf(collection), secrets, [root], failed)
    if (next.pem !== root.pem) derived.clear()
    root = next
  })
  const nowMs = (): number => clock.now().getTime()
  const active = (): SigningKey => {
    const signing = keys.findLast(({ signsFromMs }) => signsFromMs <= nowMs()) ?? keys[0]
    if (!signing) throw new Error('The store has no signing keys left')
    return signing
  }

  const keepUntil = async (key: SigningKey, untilMs: number): Promise<void> => {
    const entry = collection.at(key.key)
    if (!entry || entry.value.kid !== key.kid) return
    const { sealed: _, ...fields } = entry.value
    const tokensUntil = untilMs === Number.POSITIVE_INFINITY ? forEver : timestamp(new Date(untilMs + slackMs))
    const write = secrets.sealing((protect) =>
      collection.update(entry, protect(entry.key, { ...fields, tokensUntil }, key.pem)),
    )
    // Another server was quicker, perhaps with a later end, or the key is gone: whoever asked decides anew.
    await write.catch(ignoreLost)
  }

  const replaceRoot = async (): Promise<void> => {
    const fields = { ...firstFields(clock), use: 'derive' } as const
    const key = collection.key('', deriveName)
    await secrets.sealing((protect) => collection.change(key, (record) => record && protect(key, fields, newPem())))
  }

  const derive = (purpose: string): Buffer => {
    const known = derived.get(purpose)
    if (known) return known
    const material = root.privateKey.export({ type: 'pkcs8', format: 'der' })
    const secret = Buffer.from(hkdfSync('sha256', material, '', `svc3 ${purpose}`, 32))
    derived.set(purpose, secret)
    return secret
  }

  const rotate: SigningKeys['rotate'] = async ({ isRevoking = false } = {}) => {
    const kid = newKid()
    const before = signingOf(collection)
    const createdAt = timestamp(clock.now())
    const signsFrom = isRevoking ? createdAt : timestamp(new Date(nowMs() + publishedMs))
    await add(collection, secrets, kid, newPem(), { kid, createdAt, signsFrom })
    if (isRevoking) for (const entry of before) await collection.delete(entry).catch(ignoreLost)
    // Last: a server that has the new one takes no old token any more, and so opens no session for one.
    if (isRevoking) await replaceRoot()
    return { kid, signsFrom, older: isRevoking ? 0 : before.length, revoked: isRevoking ? before.length : 0 }
  }

  return {
    get active() {
      return active()
    },
    async signer(untilMs) {
      for (;;) {
        const key = active()
        if (untilMs <= nowMs() + shortTokenMs || untilMs <= key.tokensUntilMs) return key
        await keepUntil(key, untilMs)
      }
    },
    publicKey: (kid) => {
      const key = kid === undefined ? undefined : keys.find((each) => each.kid === kid)
      if (!key) throw new errors.JWKSNoMatchingKey()
      return key.publicKey
    },
    get removals() {
      return removals
    },
    derive,
    rotate,
    async tend() {
      const newest = keys.at(-1)
      if (newest && nowMs() - newest.signsFromMs > rotateAfterMs) await rotate()
      for (const key of keys) {
        const entry = collection.at(key.key)
        if (entry && hasEnded(endOf(key, keys), nowMs())) await collection.delete(entry).catch(ignoreLost)
      }
    },
    [Symbol.dispose]: unsubscribe,
  }
}

const signingOf = (collection: Collection<SigningKeyRecord>): readonly Entry<SigningKeyRecord>[] =>
  collection.list().filter(({ value }) => value.use !== 'derive')
const rootOf = (collection: Collection<SigningKeyRecord>): readonly Entry<SigningKeyRecord>[] =>
  collection.list().filter(({ value }) => value.use === 'derive')

const newKid = (): string => randomBytes(8).toString('hex')
const newPem = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const firstFields = (clock: Clock) => ({ kid: newKid(), createdAt: timestamp(clock.now()) })

/** Of two servers that start at once, one makes it. */
async function add(
  collection: Collection<SigningKeyRecord>,
  secrets: Secrets,
  name: string,
  pem: string,
  fields: Omit<SigningKeyRecord, 'sealed'>,
): Promise<void> {
  const key = collection.key('', name)
  try {
    await secrets.sealing((protect) => collection.create('', name, protect(key, fields, pem)))
  } catch (error) {
    if (!isFault(error, 'AlreadyExists')) throw error
  }
}
