// Delays login attempts after wrong passwords. A few are free; each further one doubles the wait, for the account and for the
// client's network. Wrong device codes count for the network only. Counts are in the store, so that neither a restart nor
// another server resets them. Accounts are stored as keyed hashes, because people type passwords into the wrong field.
import { type Clock, timestamp } from '../../platform/clock.ts'
import { networkOf } from '../../rules/addresses.ts'
import type { Collection } from '../../store/collection.ts'
import type { LoginTriesRecord } from '../../store/records/server-records.ts'

export interface LoginThrottle {
  /** Returns 0 if the attempt may proceed, or the seconds to wait. It counts as wrong until `succeeded` is called. */
  begin(email: string, address: string): Promise<number>
  succeeded(email: string, address: string): Promise<void>
  /** Removes the attempt from the account's count, because the password was not checked. */
  notChecked(email: string): Promise<void>
  /** As `begin`, for a device code. */
  beginCode(address: string): Promise<number>
  codeSucceeded(address: string): Promise<void>
}

interface ThrottleOptions {
  readonly tries: Collection<LoginTriesRecord>
  readonly hide: (kind: string, id: string) => string
  readonly clock: Clock
}

const free = { account: 5, address: 20, code: 20 } as const
const longestWaitSeconds = 15 * 60
const forgetMs = 60 * 60_000

/** The wait before the next attempt. */
const waitSecondsAfter = (wrong: number, freeTries: number): number =>
  wrong < freeTries ? 0 : Math.min(2 ** (wrong - freeTries), longestWaitSeconds)

export function createLoginThrottle({ tries, hide, clock }: ThrottleOptions): LoginThrottle {
  const idOf = (kind: keyof typeof free, text: string): string => hide(`tries ${kind}`, text)
  const account = (email: string): string => idOf('account', email.trim().toLowerCase().slice(0, 320))
  const from = (address: string): string => idOf('address', networkOf(address))
  const code = (address: string): string => idOf('code', networkOf(address))

  const waitOf = (id: string): number => {
    const record = tries.get('', id)?.value
    const leftMs = record ? Date.parse(record.freeAt) - clock.now().getTime() : 0
    // The limit applies if the clock was set back.
    return Math.min(Math.max(0, Math.ceil(leftMs / 1_000)), longestWaitSeconds)
  }

  /** By compare-and-set, so that concurrent attempts are all counted. */
  const change = async (id: string, next: (wrong: number) => LoginTriesRecord | null | undefined): Promise<void> => {
    await tries.change(tries.key('', id), (record) => {
      const isOld = record === undefined || clock.now().getTime() - Date.parse(record.at) >= forgetMs
      return next(isOld ? 0 : record.wrong)
    })
  }

  const recordOf = (wrong: number, waitSeconds: number): LoginTriesRecord => {
    const now = clock.now()
    return { wrong, freeAt: timestamp(new Date(now.getTime() + waitSeconds * 1_000)), at: timestamp(now) }
  }
  /** Counts an attempt and returns 0, or returns the seconds to wait. */
  const count = async (id: string, freeTries: number): Promise<number> => {
    let wait = 0
    await change(id, (wrong) => {
      wait = waitOf(id)
      return wait > 0 ? undefined : recordOf(wrong + 1, waitSecondsAfter(wrong + 1, freeTries))
    })
    return wait
  }
  const uncount = (id: string): Promise<void> => change(id, (wrong) => (wrong > 1 ? recordOf(wrong - 1, 0) : null))

  return {
    async begin(email, address) {
      const ids = [account(email), from(address)] as const
      const wait = Math.max(...ids.map(waitOf))
      if (wait > 0) return wait
      return (await count(ids[0], free.account)) || count(ids[1], free.address)
    },
    async succeeded(email, address) {
      await change(account(email), () => null)
      // Removes only this attempt, so that logins to an own account do not allow more guesses at others.
      await uncount(from(address))
    },
    notChecked: (email) => uncount(account(email)),
    beginCode: (address) => count(code(address), free.code),
    codeSucceeded: (address) => uncount(code(address)),
  }
}
