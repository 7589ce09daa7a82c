// Draws a table on a terminal and redraws it in place when its rows change.
import type { Sink } from '../host.ts'
import { type OutputColumn, type Rendering, render } from './output.ts'
import { cut } from './text-width.ts'

interface LiveTable<T> {
  /** Sets the rows and schedules a redraw. Throws the error of an earlier redraw that failed. */
  show(items: readonly T[]): void
  /** Sets the line below the table; undefined removes it. */
  setStatus(text: string | undefined): void
  /** Draws the table a last time, without the status line, and leaves it on the screen. */
  end(): Promise<void>
}

/** Changes within this time are drawn together. */
const settleMs = 50
/** Times such as "2 min ago" change even if no record does. */
const refreshMs = 10_000
const usualColumns = 80

export function liveTable<T>(
  stdout: Sink,
  columns: readonly OutputColumn<T>[],
  how: () => Rendering,
  none: string,
): LiveTable<T> {
  let items: readonly T[] = []
  let below: string | undefined
  let drawn = 0
  let pending: ReturnType<typeof setTimeout> | undefined
  let failure: unknown
  const draw = async (): Promise<void> => {
    clearTimeout(pending)
    pending = undefined
    const usual = how()
    // Leaves one column free, because a full line would wrap, and the redraw would be off by a line.
    const width = (usual.columns ?? usualColumns) - 1
    const table =
      items.length === 0
        ? `${cut(none, width)}\n`
        : await render(items, columns, { ...usual, columns: width, isCut: true })
    const lines = [...table.split('\n').slice(0, -1), ...(below === undefined ? [] : [cut(below, width)])]
    // Lines that have scrolled away cannot be redrawn.
    const room = Math.max(3, (stdout.rows || 24) - 1)
    const shown =
      lines.length <= room
        ? lines
        : [...lines.slice(0, room - 1), cut(`… and ${lines.length - room + 1} more lines`, width)]
    stdout.write(`${drawn > 0 ? `\x1b[${drawn}A\r\x1b[J` : ''}${shown.join('\n')}\n`)
    drawn = shown.length
  }
  const soon = (): void => {
    pending ??= setTimeout(() => {
      draw().catch((error: unknown) => {
        failure = error
      })
    }, settleMs)
  }
  const refresh = setInterval(soon, refreshMs)
  return {
    show(now) {
      if (failure !== undefined) throw failure
      items = now
      soon()
    },
    setStatus(text) {
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
