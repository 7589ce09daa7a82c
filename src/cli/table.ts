// A table for eyes: columns side by side in the width of the terminal. Nothing ever wraps: the widest columns are cut
// first, the first one, which names things, last; what still does not fit is cut at the edge.
import { cut, widthOf } from './text-width.ts'

export interface TableStyle {
  readonly color: boolean
  /** Of the terminal; undefined where it is not known, and nothing is cut. */
  readonly columns: number | undefined
}

type Row = readonly string[]

const gaps = ['   ', '  ', ' '] as const
/** Less says nothing. */
const leastWidth = 8
const leastNameWidth = 16

/** What each column needs for these rows. */
export const widthsOf = (rows: readonly Row[]): number[] =>
  rows.reduce<number[]>((widths, row) => {
    for (const [index, text] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, widthOf(text))
    return widths
  }, [])

export interface Layout {
  readonly widths: readonly number[]
  readonly gap: string
}

export function layoutOf(needed: readonly number[], columns: number | undefined): Layout {
  const room = columns || Number.POSITIVE_INFINITY
  const total = (widths: readonly number[], gap: string): number =>
    widths.reduce((sum, width) => sum + width, 0) + gap.length * (widths.length - 1)
  const [wideGap, usualGap] = gaps
  for (const gap of gaps) if (total(needed, gap) <= room) return { widths: needed, gap }
  const widths = [...needed]
  const gap = needed.length > 8 ? usualGap : wideGap
  let over = total(widths, gap) - room
  // The widest gives way, again and again, so that wide ones end up alike and narrow ones whole; then the first.
  for (; over > 0; over--) {
    const widest = widths.reduce((best, width, index) => (index > 0 && width > (widths[best] ?? 0) ? index : best), 1)
    if ((widths[widest] ?? 0) > leastWidth) widths[widest] = (widths[widest] ?? 0) - 1
    else if ((widths[0] ?? 0) > leastNameWidth) widths[0] = (widths[0] ?? 0) - 1
    else break
  }
  return { widths, gap }
}

/** Header and rows as lines. */
export function linesOf(headers: Row, rows: readonly Row[], { widths, gap }: Layout, style: TableStyle): string[] {
  const tones = headers.map((header) => (style.color && toned.has(header) ? toneOf : undefined))
  const line = (row: Row, isHead: boolean): string => {
    const last = row.length - 1
    const cells = row.map((text, index) => {
      const shown = cut(text, widths[index] ?? 0)
      return index === last ? shown : shown + ' '.repeat((widths[index] ?? 0) - widthOf(shown))
    })
    const plain = cut(cells.join(gap).trimEnd(), style.columns || Number.POSITIVE_INFINITY)
    if (!style.color) return plain
    if (isHead) return `\x1b[1m${plain}\x1b[22m`
    // Colours take no room, so they come last, and only where the line was not cut.
    if (plain.length < cells.join(gap).trimEnd().length) return plain
    const colored = cells.map((cell, index) => {
      const tone = tones[index]?.(row[index] ?? '')
      return tone === undefined ? cell : `\x1b[${tone}m${cell.trimEnd()}\x1b[39m${cell.slice(cell.trimEnd().length)}`
    })
    return colored.join(gap).trimEnd()
  }
  return [line(headers, true), ...rows.map((row) => line(row, false))]
}

const toned: ReadonlySet<string> = new Set(['STATUS', 'STATE', 'POWER', 'OUTCOME'])
const green = 32
const yellow = 33
const red = 31
const tones: readonly (readonly [RegExp, number])[] = [
  [/fail|error|not ready|unknown|lost/i, red],
  [/pending|updating|waiting|cordoned|suspended|starting|stopping|\d %/i, yellow],
  [/^(running|ready|success|succeeded|complete|completed|done)$/i, green],
]
const toneOf = (text: string): number | undefined => tones.find(([form]) => form.test(text))?.[1]
