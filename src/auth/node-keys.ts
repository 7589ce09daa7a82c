// How hosts become nodes: a join token, signed by the service, lets a host register its own key; from then on the key
// speaks for the node. The service keeps the public half only.
import { createPublicKey, type KeyObject, randomUUID, verify } from 'node:crypto'
import { errors, jwtVerify, SignJWT } from 'jose'
import type { Clock } from '../platform/clock.ts'
import { isCanonicalToken } from './canonical-token.ts'
import type { SigningKeys } from './signing-keys.ts'
import { skewSeconds } from './tokens.ts'

const issuer = 'svc3'
/** Another audience than that of tokens: neither can be used as the other. */
const audience = 'svc3-join'
/** A signature of a node is good for so long, so that one that was overheard is soon worth nothing. */
const signatureSeconds = 300

export interface JoinGrant {
  readonly namespace: string
  /** Names the token in events. Undefined for tokens of earlier versions. */
  readonly id?: string
  /** The id of a token that is good for one host. */
  readonly onceId?: string
  /** At the latest: clocks of servers differ. */
  readonly issuedAt: Date
  readonly expiresAt: Date
}

interface Signed {
  readonly name: string
  readonly at: string
  readonly signature: string
  readonly newKey?: string
}

export interface NodeKeys {
  /** `once`: for one host; whoever takes it sees to that, by its id. */
  issueJoinToken(
    namespace: string,
    seconds: number,
    once?: 'once',
  ): Promise<{ id: string; token: string; expiresAt: Date }>
  /** What a host may join by it; undefined for every token that is not good. */
  openJoinToken(token: string): Promise<JoinGrant | undefined>
  /** Whether the node signed its name and that time, just now; and its next key, where it wants another one. */
  isSignedBy(publicKey: string, signed: Signed): boolean
}

export function createNodeKeys(keys: SigningKeys, clock: Clock): NodeKeys {
  return {
    async issueJoinToken(namespace, seconds, once) {
      const nowSeconds = Math.floor(clock.now().getTime() / 1_000)
      const { kid, privateKey } = await keys.signer((nowSeconds + seconds + skewSeconds) * 1_000)
      const jti = randomUUID()
      const token = await new SignJWT({ namespace, jti, ...(once && { once: true }) })
        .setProtectedHeader({ alg: 'EdDSA', kid, typ: 'JWT' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt(nowSeconds)
        .setExpirationTime(nowSeconds + seconds)
        .sign(privateKey)
      return { id: idOf(jti), token, expiresAt: new Date((nowSeconds + seconds) * 1_000) }
    },
    async openJoinToken(token) {
      if (!isCanonicalToken(token)) return undefined
      try {
        const { payload } = await jwtVerify(token, ({ kid }) => keys.publicKey(kid), {
          algorithms: ['EdDSA'],
          issuer,
          audience,
          requiredClaims: ['exp', 'namespace'],
          clockTolerance: skewSeconds,
          currentDate: clock.now(),
        })
        const { namespace, once, jti, iat = 0, exp = 0 } = payload
        if (typeof namespace !== 'string' || (once === true && typeof jti !== 'string')) return undefined
        return {
          namespace,
          issuedAt: new Date((iat + skewSeconds) * 1_000),
          expiresAt: new Date(exp * 1_000),
          ...(jti && { id: idOf(jti), ...(once === true && { onceId: jti }) }),
        }
      } catch (error) {
        if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined
        throw error
      }
    },
    isSignedBy(publicKey, { name, at, signature, newKey }) {
      const key = parseNodeKey(publicKey)
      const ageSeconds = Math.abs(clock.now().getTime() - Date.parse(at)) / 1_000
      if (!key || !(ageSeconds <= signatureSeconds)) return false
      return verify(null, signedText(name, at, newKey), key, Buffer.from(signature, 'base64'))
    },
  }
}

/** Enough to tell tokens apart; the token itself cannot be made from it. */
const idOf = (jti: string): string => jti.slice(0, 8)

const signedText = (name: string, at: string, newKey: string | undefined): Buffer =>
  Buffer.from(newKey === undefined ? `svc3-agent\n${name}\n${at}` : `svc3-agent-key\n${name}\n${newKey}\n${at}`)

/** Undefined for what is no Ed25519 key. */
export function parseNodeKey(text: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyType === 'ed25519' ? key : undefined
  } catch {
    return undefined
  }
}
