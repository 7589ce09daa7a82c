// The throttle of wrong logins where several servers take logins: counted in the store, so that asking another server is
// no way around it. Who was tried is written down as a keyed hash only: people type passwords into the wrong field.
import { type Clock, timestamp } from '../../platform/clock.ts'
import { networkOf } from '../../rules/addresses.ts'
import type { Collection } from '../../store/collection.ts'
import type { LoginTriesRecord } from '../../store/records/server-records.ts'
import { forgetMs, free, type LoginThrottle, waitSecondsAfter } from './login-throttle.ts'

interface StoredThrottleOptions {
  readonly tries: Collection<LoginTriesRecord>
  readonly hide: (kind: string, id: string) => string
  readonly clock: Clock
}

export function storedThrottle({ tries, hide, clock }: StoredThrottleOptions): LoginThrottle {
  const idOf = (kind: keyof typeof free, text: string): string => hide(`tries ${kind}`, text)
  const account = (email: string): string => idOf('account', email.trim().toLowerCase().slice(0, 320))
  const from = (address: string): string => idOf('address', networkOf(address))
  const code = (address: string): string => idOf('code', networkOf(address))

  const waitOf = (id: string): number => {
    const record = tries.get('', id)?.value
    const leftMs = record ? Date.parse(record.freeAt) - clock.now().getTime() : 0
    // Of a clock that was set back, no more than the longest wait is believed.
    return Math.min(Math.max(0, Math.ceil(leftMs / 1_000)), waitSecondsAfter(Number.POSITIVE_INFINITY, 0))
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
