// Whether the observations of one object can be ordered consistently, each operation between its start and its end: the
// algorithm of Wing and Gong with Lowe's cache of configurations that led nowhere. Checking one object at a time
// (P-compositionality) keeps it fast.

export interface Timed {
  readonly startMs: number
  /** If absent, the operation may take effect at any later time, or never. */
  readonly endMs?: number
}

/** The state after the step, or `illegal` if the observation is impossible in that state. */
export type Step<S, O> = (state: S, operation: O) => S | typeof illegal
export const illegal: unique symbol = Symbol('illegal')

interface Entry<O> {
  readonly index: number
  readonly operation: O
  /** For a call: its return. */
  readonly match: Entry<O> | undefined
  previous: Entry<O> | undefined
  next: Entry<O> | undefined
}

type Verdict<O> =
  | { readonly isLinearizable: true }
  /** The longest possible order, and an operation that cannot follow it. */
  | { readonly isLinearizable: false; readonly order: readonly O[]; readonly stuck: O }

export function linearize<S, O extends Timed>(operations: readonly O[], first: S, step: Step<S, O>): Verdict<O> {
  const head = linked(operations)
  let left = operations.filter(({ endMs }) => endMs !== undefined).length
  const seen = new Set<string>()
  const stack: { entry: Entry<O>; state: S }[] = []
  let [state, taken] = [first, 0n]
  let best: { readonly order: readonly O[]; readonly stuck: O } | undefined
  let entry = head.next
  while (left > 0 && entry) {
    if (entry.match) {
      const after = step(state, entry.operation)
      const bit = 1n << BigInt(entry.index)
      const memo = after === illegal ? '' : `${(taken | bit).toString(36)} ${JSON.stringify(after)}`
      if (after !== illegal && !seen.has(memo)) {
        seen.add(memo)
        stack.push({ entry, state })
        ;[state, taken] = [after, taken | bit]
        if (entry.operation.endMs !== undefined) left -= 1
        lift(entry)
        entry = head.next
      } else entry = entry.next
      continue
    }
    // An operation that returned before any other could take effect.
    if (!best || stack.length > best.order.length)
      best = { order: stack.map((each) => each.entry.operation), stuck: entry.operation }
    const back = stack.pop()
    if (!back) return { isLinearizable: false, ...best }
    state = back.state
    taken &= ~(1n << BigInt(back.entry.index))
    if (back.entry.operation.endMs !== undefined) left += 1
    unlift(back.entry)
    entry = back.entry.next
  }
  return { isLinearizable: true }
}

/** Calls and returns in the order of time. At the same time, calls come first: such operations may be in either order. */
function linked<O extends Timed>(operations: readonly O[]): { next: Entry<O> | undefined } {
  const entries = operations.flatMap((operation, index) => {
    const back: Entry<O> = { index, operation, match: undefined, previous: undefined, next: undefined }
    const call: Entry<O> = { ...back, match: back }
    return [
      { atMs: operation.startMs, entry: call },
      { atMs: operation.endMs ?? Number.POSITIVE_INFINITY, entry: back },
    ]
  })
  const isReturn = ({ match }: Entry<O>): number => (match ? 0 : 1)
  entries.sort((a, b) => (a.atMs === b.atMs ? isReturn(a.entry) - isReturn(b.entry) : a.atMs - b.atMs))
  const head = { next: undefined } as unknown as Entry<O>
  let last = head
  for (const { entry } of entries) {
    entry.previous = last
    last.next = entry
    last = entry
  }
  return head
}

function unlink<O>({ previous, next }: Entry<O>): void {
  if (previous) previous.next = next
  if (next) next.previous = previous
}

function relink<O>(entry: Entry<O>): void {
  if (entry.previous) entry.previous.next = entry
  if (entry.next) entry.next.previous = entry
}

function lift<O>(call: Entry<O>): void {
  unlink(call)
  if (call.match) unlink(call.match)
}

function unlift<O>(call: Entry<O>): void {
  if (call.match) relink(call.match)
  relink(call)
}
