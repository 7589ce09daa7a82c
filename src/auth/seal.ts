// Secrets at rest: AES-256-GCM with a nonce per record. The record's key and its other fields are associated data, so
// that a sealed value that was moved to another record, or whose record was altered, does not open.
import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto'
import type { Keyring } from './keyring.ts'

/** `v1.<key id>.<nonce>.<ciphertext and tag>`, the last two in base64url. */
type Sealed = string

export class SealError extends Error {
  override readonly name = 'SealError'
}

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** Random bytes for many nonces are asked for at once: one by one, they cost as much as the sealing. */
const nonces = Buffer.alloc(256 * nonceBytes)
let usedBytes = nonces.length

function newNonce(): Buffer {
  if (usedBytes === nonces.length) {
    randomFillSync(nonces)
    usedBytes = 0
  }
  usedBytes += nonceBytes
  return nonces.subarray(usedBytes - nonceBytes, usedBytes)
}

/** What a secret is bound to. */
interface Binding {
  readonly key: string
  readonly fields: Readonly<Record<string, unknown>>
}

export function seal(ring: Keyring, secret: string, binding: Binding): Sealed {
  const { id, secret: key } = ring.active
  const nonce = newNonce()
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(associated(id, binding))
  const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return ['v1', id, nonce.toString('base64url'), sealed.toString('base64url')].join('.')
}

export function unseal(ring: Keyring, sealed: Sealed, binding: Binding): string {
  const [version, id, nonce, body] = sealed.split('.')
  if (version !== 'v1' || !id || !nonce || !body) throw refused(binding, 'has an unknown format')
  const key = ring.keys.get(id)
  if (!key) throw refused(binding, `is encrypted with key ${id}, which is not in the key ring`)
  const bytes = Buffer.from(body, 'base64url')
  try {
    const decipher = createDecipheriv(algorithm, key.secret, Buffer.from(nonce, 'base64url'), {
      authTagLength: tagBytes,
    })
    decipher.setAAD(associated(id, binding)).setAuthTag(bytes.subarray(-tagBytes))
    return Buffer.concat([decipher.update(bytes.subarray(0, -tagBytes)), decipher.final()]).toString('utf8')
  } catch {
    throw refused(binding, 'cannot be decrypted: it was changed or moved from another record')
  }
}

export const sealedWith = (sealed: Sealed): string => sealed.split('.')[1] ?? ''

const refused = (binding: Binding, problem: string): SealError =>
  new SealError(`The secret of ${binding.key} ${problem}`)

/** Fields in order of name, so that the order in which a record was built does not matter. */
function associated(keyId: string, { key, fields }: Binding): Buffer {
  const names = Object.keys(fields).sort()
  const sorted = names.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]]))
  return Buffer.from(JSON.stringify([keyId, key, sorted]))
}
