// The log of an object: the lines known now, or with `follow` each new line until the work is complete.
import type { Change, Entry, Rev } from '../../store/store.ts'
import type { KindObjects } from './kind-objects.ts'
import type { Kind, KindLog } from './kinds/kind.ts'

interface LogRequest {
  readonly kind: Kind
  readonly objects: KindObjects
  readonly name: string
  readonly tailLines: number | undefined
}

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

const logOf = ({ kind, objects }: LogRequest, entry: Entry<never>): KindLog =>
  kind.log?.(objects.listing.item(entry) as never) ?? { lines: [], isComplete: true }

const tailOf = (lines: readonly string[], { tailLines }: LogRequest): readonly string[] =>
  tailLines === undefined ? lines : lines.slice(Math.max(0, lines.length - tailLines))

export const logText = (request: LogRequest): string =>
  text(tailOf(logOf(request, request.objects.entry(request.name)).lines, request))

/** Throws before the first line if the object does not exist. */
export function followLog(request: LogRequest, signal: AbortSignal): AsyncIterable<string> {
  const first = request.objects.entry(request.name)
  // Not from the revision of the object, because the store may not keep changes that long.
  return linesFrom(request, first, request.objects.listing.collection.view.rev, signal)
}

async function* linesFrom(
  request: LogRequest,
  first: Entry<never>,
  after: Rev,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { collection, scope } = request.objects.listing
  const start = logOf(request, first)
  const sent = new Set(start.lines)
  yield text(tailOf(start.lines, request))
  if (start.isComplete) return
  for await (const batch of collection.watch(scope, after, signal)) {
    if ('type' in batch) continue
    for (const change of batch as readonly Change[]) {
      if ((change.type === 'put' ? change.entry : change).key !== first.key) continue
      if (change.type === 'delete') return
      const { lines, isComplete } = logOf(request, change.entry as Entry<never>)
      yield text(lines.filter((line: string) => !sent.has(line)))
      for (const line of lines) sent.add(line)
      if (isComplete) return
    }
  }
}
