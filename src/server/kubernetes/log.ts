// The log of an object: what is known of it now, or with `follow` each line as it comes, until its work is over.
import type { Change, Entry } from '../../store/store.ts'
import type { Listing } from '../lists/listing.ts'
import type { Kind, KindLog } from './kinds/kind.ts'
import { entryOf } from './list.ts'
import type { KubeQuery } from './query.ts'

interface Logged {
  readonly kind: Kind
  readonly listing: Listing<unknown>
  readonly name: string
  readonly query: Pick<KubeQuery, 'tailLines'>
}

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

const logOf = ({ kind, listing }: Logged, entry: Entry<never>): KindLog =>
  kind.log?.(listing.item(entry) as never) ?? { lines: [], isComplete: true }

const tailOf = (lines: readonly string[], { tailLines }: Logged['query']): readonly string[] =>
  tailLines === undefined ? lines : lines.slice(Math.max(0, lines.length - tailLines))

export function logText(logged: Logged): string {
  const { kind, listing, name, query } = logged
  return text(tailOf(logOf(logged, entryOf(kind, listing, name)).lines, query))
}

/** Throws at once when there is no such object. */
export function followLog(logged: Logged, signal: AbortSignal): AsyncIterable<string> {
  const { kind, listing, name } = logged
  return linesFrom(logged, entryOf(kind, listing, name), signal)
}

/** A line that was sent is not sent again: what changes is what comes. */
async function* linesFrom(logged: Logged, first: Entry<never>, signal: AbortSignal): AsyncGenerator<string> {
  const { collection, scope } = logged.listing
  const { query } = logged
  const start = logOf(logged, first)
  const sent = new Set(start.lines)
  yield text(tailOf(start.lines, query))
  if (start.isComplete) return
  for await (const batch of collection.watch(scope, first.rev, signal)) {
    if ('type' in batch) continue
    for (const change of batch as readonly Change[]) {
      if ((change.type === 'put' ? change.entry : change).key !== first.key) continue
      if (change.type === 'delete') return
      const { lines, isComplete } = logOf(logged, change.entry as Entry<never>)
      yield text(lines.filter((line: string) => !sent.has(line)))
      for (const line of lines) sent.add(line)
      if (isComplete) return
    }
  }
}
