// The keys that sign tokens. They are sealed records, which all servers of a cluster follow. One key signs; each key
// verifies until the last token that it signed has expired.
import { generateKeyPairSync, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { errors } from 'jose'
import { type Clock, timestamp } from '../platform/clock.ts'
import type { Collection } from '../store/collection.ts'
import type { SigningKeyRecord } from '../store/records/collections.ts'
import { type Entry, ignoreLost, isFault } from '../store/store.ts'
import type { Secrets } from './secrets.ts'
import { endOf, hasEnded, neverExpires, openKeys, type SigningKey, shortTokenMs } from './signing-key.ts'

export interface SigningKeys extends Disposable {
  /** The key that signs now. */
  readonly active: SigningKey
  /**
   * Returns the key for a token that expires at `untilMs` (Infinity: never), after noting that the key is kept until
   * then.
   */
  signer(untilMs: number): Promise<SigningKey>
  /** Throws jose's error for an unknown key, so that the verifier refuses the token. */
  publicKey(kid: string | undefined): KeyObject
  /** Incremented when a key is removed. Callers must then forget what they have verified. */
  readonly removals: number
  /**
   * A secret for another purpose, the same on every server and after restarts. Do not cache it: a revocation changes
   * it.
   */
  derive(purpose: string): Buffer
  /**
   * Adds a key, which signs after a minute, when every server has it. With `isRevoking` it signs at once, and all other
   * keys are deleted.
   */
  rotate(options?: { readonly isRevoking?: boolean }): Promise<Rotated>
  /**
   * Called regularly by one server: adds a key when the last one is old, and deletes keys whose tokens have all
   * expired.
   */
  maintain(): Promise<void>
}

export interface Rotated {
  readonly kid: string
  readonly signsFrom: string
  /** The number of keys that only verify. */
  readonly older: number
  readonly revoked: number
}

/** A key is published this long before it signs. */
const publishedMs = 60_000
const rotateAfterMs = 90 * 24 * 3_600_000
/** Keys are kept longer than requested, so that few long-lived tokens require a write. */
const slackMs = 30 * 24 * 3_600_000
const firstName = 'first'
const deriveName = 'derive'

/** Follows the keys, and creates the first ones if there are none. */
export async function loadSigningKeys(
  collection: Collection<SigningKeyRecord>,
  secrets: Secrets,
  clock: Clock,
  failed: (key: string, error: unknown) => void = () => undefined,
): Promise<SigningKeys> {
  if (signingOf(collection).length === 0) await add(collection, secrets, firstName, newPem(), firstFields(clock))
  // Secrets are derived from a separate key, because signing keys change. In data of early alphas it is a copy of the
  // first signing key, until keys are revoked.
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
    const tokensUntil = untilMs === Number.POSITIVE_INFINITY ? neverExpires : timestamp(new Date(untilMs + slackMs))
    const write = secrets.sealing((protect) =>
      collection.update(entry, protect(entry.key, { ...fields, tokensUntil }, key.pem)),
    )
    // If another server changed or deleted the key first, `signer` reads the key again.
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
    // The root is replaced last, so that a server that has it has already dropped the old signing keys, and accepts no
    // old token for a new browser session.
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
    async maintain() {
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

/** Creates a key, unless another server that starts at the same time was first. */
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
