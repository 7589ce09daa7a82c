// A table on a terminal that is drawn over itself as its rows change, with a line below it while the connection is lost.
import type { Sink } from '../host.ts'
import { type Column, type Rendering, render } from './output.ts'

interface LiveTable<T> {
  /** The rows as they are now; drawn soon. */
  show(items: readonly T[]): void
  /** A line below the table; undefined removes it. */
  say(text: string | undefined): void
  /** Draws what has not been drawn, and leaves it there. */
  end(): Promise<void>
}

/** Many changes at once are one drawing. */
const settleMs = 50
/** Times read "2 min ago", and change when nothing else does. */
const refreshMs = 10_000

export function liveTable<T>(
  stdout: Sink,
  columns: readonly Column<T>[],
  how: () => Rendering,
  none: string,
): LiveTable<T> {
  let items: readonly T[] = []
  let below: string | undefined
  let drawn = 0
  let pending: ReturnType<typeof setTimeout> | undefined
  const draw = async (): Promise<void> => {
    clearTimeout(pending)
    pending = undefined
    const table = items.length === 0 ? `${none}\n` : await render(items, columns, how())
    const lines = [...table.split('\n').slice(0, -1), ...(below === undefined ? [] : [below])]
    // What has scrolled away cannot be drawn over.
    const room = Math.max(3, (stdout.rows || 24) - 1)
    const shown =
      lines.length <= room ? lines : [...lines.slice(0, room - 1), `… and ${lines.length - room + 1} more lines`]
    stdout.write(`${drawn > 0 ? `\x1b[${drawn}A\r\x1b[J` : ''}${shown.join('\n')}\n`)
    drawn = shown.length
  }
  const soon = (): void => {
    pending ??= setTimeout(() => void draw(), settleMs)
  }
  const refresh = setInterval(soon, refreshMs)
  return {
    show(now) {
      items = now
      soon()
    },
    say(text) {
      if (text === below) return
      below = text
      soon()
    },
    async end() {
      clearInterval(refresh)
      below = undefined
      await draw()
    },
  }
}
