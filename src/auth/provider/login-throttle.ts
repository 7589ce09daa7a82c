// Wrong passwords cost time: a few are free, then each doubles the wait, for the account and for the address that they
// come from. Wrong codes of devices cost the address alone. Counted in memory: a restart forgives.
import { networkOf } from '../../rules/addresses.ts'

export interface LoginThrottle {
  /** Seconds to wait before the next try, or 0 when this one may go on. A try counts as wrong until it is `right`. */
  begin(email: string, address: string): number | Promise<number>
  right(email: string, address: string): void | Promise<void>
  /** The password of a try that began was not looked at: the account's owner does not pay for it. */
  unjudged(email: string): void | Promise<void>
  /** As `begin`, for a code that a device shows. */
  beginCode(address: string): number | Promise<number>
  rightCode(address: string): void | Promise<void>
}

/** Counted in the memory of one server. */
export interface OwnThrottle extends LoginThrottle {
  begin(email: string, address: string): number
  beginCode(address: string): number
}

interface Tries {
  wrong: number
  freeAtMs: number
  atMs: number
}

export const free = { account: 5, address: 20, code: 20 } as const
const longestWaitSeconds = 15 * 60
export const forgetMs = 60 * 60_000
/** More than this at once are not kept: the longest silent is forgotten. */
const maxEntries = 20_000

/** How long the next try has to wait after so many wrong ones. */
export const waitSecondsAfter = (wrong: number, freeTries: number): number =>
  wrong < freeTries ? 0 : Math.min(2 ** (wrong - freeTries), longestWaitSeconds)

export function createLoginThrottle(nowMs: () => number = () => performance.now()): OwnThrottle {
  const tries = new Map<string, Tries>()

  const at = (key: string): Tries => {
    const found = tries.get(key)
    const now = nowMs()
    return found && now - found.atMs < forgetMs ? found : { wrong: 0, freeAtMs: now, atMs: now }
  }
  const count = (key: string, freeTries: number): void => {
    const now = nowMs()
    const wrong = at(key).wrong + 1
    const waitSeconds = waitSecondsAfter(wrong, freeTries)
    tries.delete(key)
    if (tries.size >= maxEntries) tries.delete(tries.keys().next().value as string)
    tries.set(key, { wrong, freeAtMs: now + waitSeconds * 1_000, atMs: now })
  }
  const accountKey = (email: string): string => `account ${email.trim().toLowerCase().slice(0, 320)}`

  const addressKey = (address: string): string => `address ${networkOf(address)}`
  const codeKey = (address: string): string => `code ${networkOf(address)}`
  const takeBack = (key: string): void => {
    const found = tries.get(key)
    if (found) found.wrong -= 1
  }
  const waitSeconds = (...keys: string[]): number =>
    Math.max(0, Math.ceil((Math.max(...keys.map((key) => at(key).freeAtMs)) - nowMs()) / 1_000))

  return {
    begin(email, address) {
      const [account, from] = [accountKey(email), addressKey(address)]
      const wait = waitSeconds(account, from)
      if (wait > 0) return wait
      count(account, free.account)
      count(from, free.address)
      return 0
    },
    right(email, address) {
      tries.delete(accountKey(email))
      // Only this one try: one's own account must not buy guesses at others.
      takeBack(addressKey(address))
    },
    unjudged(email) {
      const found = tries.get(accountKey(email))
      if (found) Object.assign(found, { wrong: found.wrong - 1, freeAtMs: nowMs() })
    },
    beginCode(address) {
      const wait = waitSeconds(codeKey(address))
      if (wait === 0) count(codeKey(address), free.code)
      return wait
    },
    rightCode: (address) => takeBack(codeKey(address)),
  }
}
