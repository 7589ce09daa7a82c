// Wrong passwords cost time: a few are free, then each doubles the wait, for the account and for the address that they
// come from. Wrong codes of devices cost the address alone. Counted in the store, so that neither a restart nor another
// server is a way around it. Who was tried is written down as a keyed hash only: people type passwords into the wrong field.
import { type Clock, timestamp } from '../../platform/clock.ts'
import { networkOf } from '../../rules/addresses.ts'
import type { Collection } from '../../store/collection.ts'
import type { LoginTriesRecord } from '../../store/records/server-records.ts'

export interface LoginThrottle {
  /** Seconds to wait before the next try, or 0 when this one may go on. A try counts as wrong until it is `right`. */
  begin(email: string, address: string): Promise<number>
  right(email: string, address: string): Promise<void>
  /** The password of a try that began was not looked at: the account's owner does not pay for it. */
  unjudged(email: string): Promise<void>
  /** As `begin`, for a code that a device shows. */
  beginCode(address: string): Promise<number>
  rightCode(address: string): Promise<void>
}

interface ThrottleOptions {
  readonly tries: Collection<LoginTriesRecord>
  readonly hide: (kind: string, id: string) => string
  readonly clock: Clock
}

const free = { account: 5, address: 20, code: 20 } as const
const longestWaitSeconds = 15 * 60
const forgetMs = 60 * 60_000

/** How long the next try has to wait after so many wrong ones. */
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
    // Of a clock that was set back, no more than the longest wait is believed.
    return Math.min(Math.max(0, Math.ceil(leftMs / 1_000)), longestWaitSeconds)
  }

  /** By compare-and-set: tries that come at once are counted one after the other. */
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
  /** What is left to wait; 0 when the try was counted, and may go on. */
  const count = async (id: string, freeTries: number): Promise<number> => {
    let wait = 0
    await change(id, (wrong) => {
      wait = waitOf(id)
      return wait > 0 ? undefined : recordOf(wrong + 1, waitSecondsAfter(wrong + 1, freeTries))
    })
    return wait
  }
  const takeBack = (id: string): Promise<void> => change(id, (wrong) => (wrong > 1 ? recordOf(wrong - 1, 0) : null))

  return {
    async begin(email, address) {
      const ids = [account(email), from(address)] as const
      const wait = Math.max(...ids.map(waitOf))
      if (wait > 0) return wait
      return (await count(ids[0], free.account)) || count(ids[1], free.address)
    },
    async right(email, address) {
      await change(account(email), () => null)
      // Only this one try: one's own account must not buy guesses at others.
      await takeBack(from(address))
    },
    unjudged: (email) => takeBack(account(email)),
    beginCode: (address) => count(code(address), free.code),
    rightCode: (address) => takeBack(code(address)),
  }
}
