// Answers in the four formats. A table is two things: aligned for eyes on a terminal, tab-separated and exact in a pipe.
import type { Format } from './command.ts'

/** A time stands in its wire form; a terminal shows how long ago that was. */
export type Cell = string | number | boolean | undefined | { readonly time: string }

export interface Column<T> {
  readonly header: string
  /** Only with `-o wide`. */
  readonly wide?: true
  cell(item: T): Cell
}

export interface Rendering {
  readonly format: Format
  readonly isTerminal: boolean
  readonly color: boolean
  readonly now: Date
}

export async function render<T>(items: readonly T[], columns: readonly Column<T>[], how: Rendering): Promise<string> {
  const { format, isTerminal, color, now } = how
  if (format === 'json') return `${JSON.stringify(items, null, 2)}\n`
  if (format === 'yaml') return (await import('./yaml.ts')).toYaml(items)
  const shown = columns.filter((column) => format === 'wide' || !column.wide)
  const rows = items.map((item) => shown.map((column) => cellText(column.cell(item), isTerminal ? now : undefined)))
  const headers = shown.map((column) => column.header)
  return isTerminal ? aligned(headers, rows, color) : [headers, ...rows].map((row) => `${row.join('\t')}\n`).join('')
}

/** A table that grows: the text for one more item, under the header, which comes with the first. */
export function growingTable<T>(columns: readonly Column<T>[], how: Rendering): (item: T) => string {
  const { format, isTerminal, color, now } = how
  const shown = columns.filter((column) => format === 'wide' || !column.wide)
  const headers = shown.map((column) => column.header)
  let widths = headers.map((header) => header.length)
  let isFirst = true
  return (item) => {
    const row = shown.map((column) => cellText(column.cell(item), isTerminal ? now : undefined))
    widths = widths.map((width, index) => Math.max(width, widthOf(row[index] ?? '')))
    const head = isFirst ? [isTerminal ? headLine(headers, widths, color) : headers.join('\t')] : []
    isFirst = false
    return [...head, isTerminal ? paddedLine(row, widths) : row.join('\t')].map((line) => `${line}\n`).join('')
  }
}

function aligned(headers: readonly string[], rows: readonly (readonly string[])[], color: boolean): string {
  const widths = headers.map((header, index) =>
    rows.reduce((width, row) => Math.max(width, widthOf(row[index] ?? '')), header.length),
  )
  const lines = [headLine(headers, widths, color), ...rows.map((row) => paddedLine(row, widths))]
  return lines.map((text) => `${text}\n`).join('')
}

const headLine = (headers: readonly string[], widths: readonly number[], color: boolean): string =>
  color ? `\x1b[1m${paddedLine(headers, widths)}\x1b[22m` : paddedLine(headers, widths)

const paddedLine = (row: readonly string[], widths: readonly number[]): string =>
  row
    .map((text, index) => text + ' '.repeat((widths[index] ?? 0) - widthOf(text)))
    .join('   ')
    .trimEnd()

const widthOf = (text: string): number => [...text].length

/** `now` on a terminal only. */
function cellText(cell: Cell, now: Date | undefined): string {
  if (cell === undefined) return now ? '-' : ''
  if (typeof cell !== 'object') return visible(String(cell))
  return now ? ago(cell.time, now) : visible(cell.time)
}

/** Control characters would break the table or play tricks with the terminal: they are shown, not sent. */
export const visible = (text: string): string =>
  text.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (character) => escapes[character] ?? hex(character),
  )

const escapes: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' }
const hex = (character: string): string => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`

const units = [
  { seconds: 86_400, name: 'd' },
  { seconds: 3_600, name: 'h' },
  { seconds: 60, name: 'min' },
] as const
const longAgoSeconds = 30 * 86_400

/** "2 h ago"; the date when that is long ago; the time as it stands when it is none or lies ahead. */
export function ago(time: string, now: Date): string {
  const seconds = Math.floor((now.getTime() - Date.parse(time)) / 1000)
  if (!(seconds >= -60)) return visible(time)
  if (seconds >= longAgoSeconds) return visible(time.slice(0, 10))
  const unit = units.find((candidate) => seconds >= candidate.seconds)
  return unit ? `${Math.floor(seconds / unit.seconds)} ${unit.name} ago` : 'just now'
}
