// Fits a table to the terminal without wrapping: the widest columns are cut first, then less important ones are hidden,
// and the name is cut last. With -o wide, lines may exceed the terminal instead.
import { cut, widthOf } from './text-width.ts'

interface TableStyle {
  readonly color: boolean
}

export interface TableLimits {
  /** For each column: `whole` is not cut; `always` is neither cut nor hidden. */
  readonly keeps: readonly ('whole' | 'always' | undefined)[]
  /** Whether lines may exceed the terminal, so that nothing is cut. */
  readonly overflows: boolean
}

type Row = readonly string[]

const gaps = ['   ', '  ', ' '] as const
/** The narrowest width of a cut column. */
const minWidth = 8
const minNameWidth = 16

/** The width that each column needs. */
export const widthsOf = (rows: readonly Row[]): number[] =>
  rows.reduce<number[]>((widths, row) => {
    for (const [index, text] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, widthOf(text))
    return widths
  }, [])

/** Which columns to draw: all required ones, and spare ones from the left as long as they fit. */
export function withRoom(
  needed: readonly number[],
  isSpare: readonly boolean[],
  columns: number | undefined,
): boolean[] {
  const [, gap] = gaps
  const others = needed.filter((_, index) => !isSpare[index])
  let used = others.reduce((sum, width) => sum + width + gap.length, -gap.length)
  return needed.map((width, index) => {
    if (!isSpare[index]) return true
    const isFitting = columns !== undefined && used + gap.length + width <= columns
    if (isFitting) used += gap.length + width
    return isFitting
  })
}

interface Layout {
  readonly widths: readonly number[]
  readonly gap: string
  /** Indexes of hidden columns. */
  readonly hidden?: ReadonlySet<number>
  /** The length to cut lines to. */
  readonly room: number
}

const nothingKept: TableLimits = { keeps: [], overflows: false }

/** `columns` is the width of the terminal; undefined cuts nothing. */
export function layoutOf(needed: readonly number[], columns: number | undefined, limits = nothingKept): Layout {
  const { keeps, overflows } = limits
  const hidden = new Set<number>()
  const attempt = (kept: TableLimits['keeps']): Layout & { readonly isOver: boolean } => {
    const left = [...needed.keys()].filter((index) => !hidden.has(index))
    const widths = left.map((index) => needed[index] ?? 0)
    return {
      ...fitted(
        widths,
        columns,
        left.map((index) => kept[index]),
      ),
      hidden,
    }
  }
  let layout = attempt(keeps)
  if (layout.isOver && overflows) return { widths: needed, gap: gaps[1], room: Number.POSITIVE_INFINITY }
  // Hides columns from the right, those that may be cut first. Without an `always` column, hides none.
  const least = [undefined, 'whole'].flatMap((keep) =>
    [...keeps.keys()].filter((index) => keeps[index] === keep).reverse(),
  )
  for (const index of keeps.includes('always') ? least : []) {
    if (!layout.isOver) break
    hidden.add(index)
    layout = attempt(keeps)
  }
  return layout.isOver ? attempt([]) : layout
}

function fitted(
  needed: readonly number[],
  columns: number | undefined,
  keeps: TableLimits['keeps'],
): Layout & { isOver: boolean } {
  const room = columns || Number.POSITIVE_INFINITY
  const total = (widths: readonly number[], gap: string): number =>
    widths.reduce((sum, width) => sum + width, 0) + gap.length * (widths.length - 1)
  const [wideGap, usualGap] = gaps
  for (const gap of gaps) if (total(needed, gap) <= room) return { widths: needed, gap, room, isOver: false }
  const widths = [...needed]
  const gap = needed.length > 8 ? usualGap : wideGap
  let excess = total(widths, gap) - room
  // Narrows the widest column by one at a time, so that wide ones end up equal and narrow ones whole; then the first column.
  for (; excess > 0; excess--) {
    const widest = widths.reduce((best, width, index) => {
      const isCuttable = index > 0 && keeps[index] === undefined
      return isCuttable && width > (widths[best] ?? minWidth) ? index : best
    }, -1)
    if (widest > 0) widths[widest] = (widths[widest] ?? 0) - 1
    else if (keeps[0] === undefined && (widths[0] ?? 0) > minNameWidth) widths[0] = (widths[0] ?? 0) - 1
    else break
  }
  return { widths, gap, room, isOver: excess > 0 }
}

export function linesOf(headers: Row, rows: readonly Row[], layout: Layout, style: TableStyle): string[] {
  const { widths, gap, room, hidden } = layout
  const shown = (row: Row): Row => (hidden ? row.filter((_, index) => !hidden.has(index)) : row)
  const tones = shown(headers).map((header) => (style.color && toned.has(header) ? toneOf : undefined))
  const line = (row: Row, isHead: boolean): string => {
    const last = row.length - 1
    const cells = row.map((text, index) => {
      const shown = cut(text, widths[index] ?? 0)
      return index === last ? shown : shown + ' '.repeat((widths[index] ?? 0) - widthOf(shown))
    })
    const whole = cells.join(gap).trimEnd()
    const plain = cut(whole, room)
    if (!style.color) return plain
    if (isHead) return `\x1b[1m${plain}\x1b[22m`
    // Adds colors after the layout, because they take no room, and only to lines that were not cut.
    if (plain !== whole) return plain
    const colored = cells.map((cell, index) => {
      const tone = tones[index]?.(row[index] ?? '')
      return tone === undefined ? cell : `\x1b[${tone}m${cell.trimEnd()}\x1b[39m${cell.slice(cell.trimEnd().length)}`
    })
    return colored.join(gap).trimEnd()
  }
  return [line(shown(headers), true), ...rows.map((row) => line(shown(row), false))]
}

const toned: ReadonlySet<string> = new Set(['STATUS', 'STATE', 'POWER', 'OUTCOME'])
const green = 32
const yellow = 33
const red = 31
const tones: readonly (readonly [RegExp, number])[] = [
  [/fail|error|not ready|unknown|lost/i, red],
  [/pending|updating|waiting|cordoned|suspended|stopped|starting|stopping|\d %/i, yellow],
  [/^(running|ready|success|succeeded|complete|completed|done)$/i, green],
]
const toneOf = (text: string): number | undefined => tones.find(([form]) => form.test(text))?.[1]
