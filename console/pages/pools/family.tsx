// What pools and runner pools share: pause and resume, and counts by reason.
import type { Operation } from '../../../src/api/operation.ts'
import type { RawInput } from '../../../src/client/client.ts'
import { type ActionWords, confirmItem } from '../../ui/action-dialog.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import { Facts } from '../../ui/page.tsx'

interface Pausing {
  readonly name: string
  readonly operation: Operation
  readonly input: RawInput
  readonly reason: string | undefined
  readonly pause: ActionWords
  readonly resume: ActionWords
  readonly paused: boolean
  readonly noun: string
}

/** Returns both items. The one that would change nothing is disabled, with a reason. */
export const pausing = ({ pause, resume, paused, noun, input, reason, ...rest }: Pausing): readonly MenuItem[] =>
  [true, false].map((isPause) =>
    confirmItem({
      ...rest,
      words: isPause ? pause : resume,
      input: { ...input, body: { paused: isPause } },
      reason: reason ?? (paused === isPause ? `The ${noun} is ${paused ? '' : 'not '}paused` : undefined),
    }),
  )

interface CountsProps<R extends string> {
  readonly counts: Readonly<Partial<Record<R, number>>>
  readonly reasons: Readonly<Record<R, string>>
  readonly empty: string
}

export function Counts<R extends string>({ counts, reasons, empty }: CountsProps<R>) {
  const found = Object.entries(counts) as [R, number][]
  if (found.length === 0) return <p className="muted">{empty}</p>
  return <Facts facts={Object.fromEntries(found.map(([reason, count]) => [reasons[reason], count]))} />
}
