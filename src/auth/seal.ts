// Encryption of secrets at rest by AES-256-GCM. The record's key and its other fields are associated data, so that a sealed
// value does not open if it is moved to another record or if its record is altered.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Keyring } from './keyring.ts'

/** `v1.<key id>.<nonce>.<ciphertext and tag>`, the last two in base64url. */
type Sealed = string

export class SealError extends Error {
  override readonly name = 'SealError'
}

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** The record that a secret belongs to. */
interface Binding {
  readonly key: string
  readonly fields: Readonly<Record<string, unknown>>
}

export function seal(ring: Keyring, secret: string, binding: Binding): Sealed {
  const { id, bytes } = ring.active
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, bytes, nonce, { authTagLength: tagBytes }).setAAD(associated(id, binding))
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
    const decipher = createDecipheriv(algorithm, key.bytes, Buffer.from(nonce, 'base64url'), {
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

/** Fields are sorted by name, so that their order in the record does not matter. */
function associated(keyId: string, { key, fields }: Binding): Buffer {
  const names = Object.keys(fields).sort()
  const sorted = names.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]]))
  return Buffer.from(JSON.stringify([keyId, key, sorted]))
}
