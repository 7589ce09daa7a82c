// Password hashes of the built-in provider's users, by scrypt. Only a limited number of checks may wait, so that each is
// answered within seconds.
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

export interface PasswordHash {
  readonly salt: string
  readonly hash: string
  readonly N: number
  readonly r: number
  readonly p: number
}

/** Too many checks are waiting, so this password was not checked. */
export class PasswordsBusy extends Error {
  override readonly name = 'PasswordsBusy'
}

const cost = { N: 2 ** 15, r: 8, p: 1 } as const
const maxMemory = 256 * 1_048_576
/** This many checks take about two seconds. */
const maxWaiting = 16

/** A hash that no password matches. */
export const unknownPassword = (): PasswordHash => ({
  ...cost,
  salt: randomBytes(16).toString('base64'),
  hash: randomBytes(32).toString('base64'),
})

export async function hashPassword(password: string): Promise<PasswordHash> {
  const salt = randomBytes(16).toString('base64')
  return { ...cost, salt, hash: (await derive(password, { ...cost, salt, hash: '' }, 32)).toString('base64') }
}

/** Throws `PasswordsBusy`. */
export async function matches(password: string, stored: PasswordHash): Promise<boolean> {
  const hash = Buffer.from(stored.hash, 'base64')
  const derived = await derive(password, stored, hash.length)
  return hash.length > 0 && timingSafeEqual(hash, derived)
}

/** The last derivation. They run in turn, because each takes 32 MiB and a thread that files and DNS also use. */
let last: Promise<unknown> = Promise.resolve()
let waiting = 0
async function derive(password: string, { salt, N, r, p }: PasswordHash, bytes: number): Promise<Buffer> {
  if (waiting > maxWaiting) throw new PasswordsBusy('too many password checks in progress')
  waiting += 1
  const next = last.then(
    () =>
      new Promise<Buffer>((resolve, reject) => {
        // The same password regardless of how a keyboard composes its characters.
        const text = password.normalize('NFC')
        scrypt(text, Buffer.from(salt, 'base64'), bytes, { N, r, p, maxmem: maxMemory }, (error, key) =>
          error ? reject(error) : resolve(key),
        )
      }),
  )
  last = next.then(
    () => undefined,
    () => undefined,
  )
  try {
    return await next
  } finally {
    waiting -= 1
  }
}
