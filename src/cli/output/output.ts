// Prints answers in four formats. Tables are aligned on a terminal, and tab-separated and exact in a pipe.
import { longSize } from '../../rules/sizes.ts'
import { layoutOf, linesOf, type TableLimits, widthsOf, withRoom } from './table.ts'

export const formats = ['table', 'wide', 'json', 'yaml'] as const
export type Format = (typeof formats)[number]

/** A time stands in its wire form, and a terminal shows how long ago that was; or a terminal shows another text. */
export type Cell =
  | string
  | number
  | boolean
  | undefined
  | { readonly time: string }
  | { readonly plain: string | number; readonly shown: string }

/** An amount of a record, `4.80Gi`: a terminal shows `4.8 GiB`. */
export const sizeCell = (size: string | undefined): Cell =>
  size === undefined ? undefined : { plain: size, shown: longSize(size) }

export interface OutputColumn<T> {
  readonly header: string
  /** Only with `-o wide`. */
  readonly wide?: true
  /** Only in the table on a terminal, which scripts do not read; `room`: only where nothing has to be cut for it. */
  readonly terminal?: 'always' | 'room'
  /** Is shown whole where a terminal is narrow; `always`: nor is it left out; `wide`: only with `-o wide`. */
  readonly keep?: 'wide' | 'whole' | 'always'
  cell(item: T): Cell
}

export interface Rendering {
  readonly format: Format
  readonly isTerminal: boolean
  readonly color: boolean
  readonly now: Date
  /** Of the terminal, where that is known. */
  readonly columns?: number | undefined
  /** No line is longer than that, also with `-o wide`: it is drawn over. */
  readonly isCut?: true
}

/** What JSON leaves out, such as undefined, is left out here too. Readers of YAML 1.1 and of 1.2 read the same. */
async function toYaml(items: readonly unknown[]): Promise<string> {
  const { stringify } = await import('yaml')
  const plain: unknown = JSON.parse(JSON.stringify(items))
  return stringify(plain, { compat: 'yaml-1.1', lineWidth: 0, aliasDuplicateObjects: false })
}

export async function render<T>(
  items: readonly T[],
  columns: readonly OutputColumn<T>[],
  how: Rendering,
): Promise<string> {
  const { format, isTerminal, now } = how
  if (format === 'json') return `${JSON.stringify(items, null, 2)}\n`
  if (format === 'yaml') return toYaml(items)
  const shown = shownOf(columns, how)
  const textsOf = (each: readonly OutputColumn<T>[]): string[][] => [
    each.map((column) => column.header),
    ...items.map((item) => each.map((column) => cellText(column.cell(item), isTerminal ? now : undefined))),
  ]
  if (!isTerminal)
    return textsOf(shown)
      .map((row) => `${row.join('\t')}\n`)
      .join('')
  const isSpare = shown.map(({ terminal }) => terminal === 'room')
  const fitting = withRoom(widthsOf(textsOf(shown)), isSpare, how.columns)
  const drawn = shown.filter((_, index) => fitting[index])
  const [headers = [], ...rows] = textsOf(drawn)
  const whole = layoutOf(widthsOf([headers, ...rows]), how.columns, limitsOf(drawn, format))
  const layout = how.isCut && how.columns ? { ...whole, room: how.columns } : whole
  return `${linesOf(headers, rows, layout, { color: how.color }).join('\n')}\n`
}

function shownOf<T>(
  columns: readonly OutputColumn<T>[],
  { format, isTerminal }: Rendering,
): readonly OutputColumn<T>[] {
  if (format === 'wide') return columns.filter(({ terminal }) => terminal === undefined)
  return columns.filter(({ wide, terminal }) => !wide && (terminal === undefined || isTerminal))
}

/** A table that grows: the text for one more item, under the header, which comes with the first. */
export async function growingTable<T>(
  columns: readonly OutputColumn<T>[],
  how: Rendering,
): Promise<(item: T) => string> {
  const { format, isTerminal } = how
  // A line stays as it is written: what it says has to be true later, too.
  const style = { color: how.color }
  const shown = shownOf(columns, how).filter(({ terminal }) => terminal !== 'room')
  const headers = shown.map((column) => column.header)
  let widths = headers.map((header) => header.length)
  let isFirst = true
  return (item) => {
    const row = shown.map((column) => cellText(column.cell(item), undefined))
    widths = widthsOf([row]).map((width, index) => Math.max(width, widths[index] ?? 0))
    const lines = isTerminal
      ? linesOf(headers, [row], layoutOf(widths, how.columns, limitsOf(shown, format)), style)
      : [headers, row].map((cells) => cells.join('\t'))
    const text = lines.slice(isFirst ? 0 : 1).map((line) => `${line}\n`)
    isFirst = false
    return text.join('')
  }
}

/** Whoever asks for all columns gets them, also where they do not fit. */
const limitsOf = <T>(shown: readonly OutputColumn<T>[], format: Format): TableLimits => ({
  keeps: shown.map(({ keep }) => (keep === 'wide' ? (format === 'wide' ? 'whole' : undefined) : keep)),
  overflows: format === 'wide',
})

/** `now` on a terminal only. */
export function cellText(cell: Cell, now: Date | undefined): string {
  if (cell === undefined) return now ? '-' : ''
  if (typeof cell !== 'object') return visible(String(cell))
  if ('plain' in cell) return visible(now ? cell.shown : String(cell.plain))
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
