// How hosts join as nodes. With a join token, which the service signs, a host registers its public key. From then on it
// authenticates by signatures of that key.
import { createPublicKey, type KeyObject, randomUUID, verify } from 'node:crypto'
import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import type { Clock } from '../platform/clock.ts'
import { isCanonicalToken } from './canonical-token.ts'
import type { SigningKeys } from './signing-keys.ts'
import { skewSeconds } from './tokens.ts'

const issuer = 'svc3'
/** Differs from the audience of other tokens, so that neither can be used as the other. */
const audience = 'svc3-join'
/** Signatures of nodes expire after this time, so that a stolen one is of little use. */
const signatureSeconds = 300

export interface JoinGrant {
  readonly namespace: string
  /** The ID of the token in events. Undefined for tokens of earlier versions. */
  readonly id?: string
  /** Set for a token that is valid for one host. The caller has to check that it is used once. */
  readonly onceId?: string
  /** An upper bound, because clocks of servers differ. */
  readonly issuedAt: Date
  readonly expiresAt: Date
  /** Tags of the nodes that join. */
  readonly tags?: readonly string[]
}

interface Signed {
  readonly name: string
  readonly at: string
  readonly signature: string
  readonly newKey?: string
}

export interface NodeKeys {
  /** `once`: the token is valid for one host (see `onceId`). */
  issueJoinToken(
    namespace: string,
    seconds: number,
    once?: 'once',
    tags?: readonly string[],
  ): Promise<{ id: string; token: string; expiresAt: Date }>
  /** Returns undefined for an invalid token. */
  openJoinToken(token: string): Promise<JoinGrant | undefined>
  /** Whether the node signed its name, a recent time and, to replace its key, the new key. */
  isSignedBy(publicKey: string, signed: Signed): boolean
}

export function createNodeKeys(keys: SigningKeys, clock: Clock): NodeKeys {
  return {
    async issueJoinToken(namespace, seconds, once, tags) {
      const nowSeconds = Math.floor(clock.now().getTime() / 1_000)
      const { kid, privateKey } = await keys.signer((nowSeconds + seconds + skewSeconds) * 1_000)
      const jti = randomUUID()
      const token = await new SignJWT({ namespace, jti, ...(once && { once: true }), ...(tags && { tags }) })
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
        const { namespace, once, jti, iat = 0, exp = 0, tags } = payload as JWTPayload & Pick<JoinGrant, 'tags'>
        if (typeof namespace !== 'string' || (once === true && typeof jti !== 'string')) return undefined
        return {
          namespace,
          issuedAt: new Date((iat + skewSeconds) * 1_000),
          expiresAt: new Date(exp * 1_000),
          ...(tags && { tags }),
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

/** Distinguishes tokens without revealing them. */
const idOf = (jti: string): string => jti.slice(0, 8)

const signedText = (name: string, at: string, newKey: string | undefined): Buffer =>
  Buffer.from(newKey === undefined ? `svc3-agent\n${name}\n${at}` : `svc3-agent-key\n${name}\n${newKey}\n${at}`)

/** Returns undefined for anything but an Ed25519 key. */
export function parseNodeKey(text: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyType === 'ed25519' ? key : undefined
  } catch {
    return undefined
  }
}
