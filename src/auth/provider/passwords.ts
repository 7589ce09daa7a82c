// Passwords of local users: scrypt, one at a time, and only so many waiting that the last of them is answered soon.
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

export interface PasswordHash {
  readonly salt: string
  readonly hash: string
  readonly N: number
  readonly r: number
  readonly p: number
}

/** As many are being checked as may wait: nothing was learned about this one. */
export class PasswordsBusy extends Error {
  override readonly name = 'PasswordsBusy'
}

const cost = { N: 2 ** 15, r: 8, p: 1 } as const
const maxMemory = 256 * 1_048_576
/** About two seconds' worth. */
const maxWaiting = 16

/** Which no password matches. */
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
  const given = await derive(password, stored, hash.length)
  return hash.length > 0 && timingSafeEqual(hash, given)
}

/** One after the other: each takes 32 MiB and a thread that the store's and the network's work needs too. */
let last: Promise<unknown> = Promise.resolve()
let underWay = 0
async function derive(password: string, { salt, N, r, p }: PasswordHash, bytes: number): Promise<Buffer> {
  if (underWay > maxWaiting) throw new PasswordsBusy('too many password checks in progress')
  underWay += 1
  const next = last.then(
    () =>
      new Promise<Buffer>((resolve, reject) => {
        // The same password however a keyboard composes it.
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
    underWay -= 1
  }
}
