// Renders records in four formats. Tables are aligned on a terminal; in a pipe, they are tab-separated and exact.
import { longSize } from '../../rules/sizes.ts'
import { layoutOf, linesOf, type TableLimits, widthsOf, withRoom } from './table.ts'

export const outputFormats = ['table', 'wide', 'json', 'yaml'] as const
export type Format = (typeof outputFormats)[number]

/** Pipes get the time, or `plain`; terminals get how long ago it was, or `shown`. */
export type Cell =
  | string
  | number
  | boolean
  | undefined
  | { readonly time: string }
  | { readonly plain: string | number; readonly shown: string }

/** Shows `4.80Gi` as `4.8 GiB` on a terminal. */
export const sizeCell = (size: string | undefined): Cell =>
  size === undefined ? undefined : { plain: size, shown: longSize(size) }

export interface OutputColumn<T> {
  readonly header: string
  /** Shows the column only with `-o wide`. */
  readonly wide?: true
  /** Shows the column only on a terminal without `-o wide`, and `room` only if no other column is cut for it. */
  readonly terminal?: 'always' | 'room'
  /** Not cut on a narrow terminal. `always`: not hidden either. `wide`: only with `-o wide`. */
  readonly keep?: 'wide' | 'whole' | 'always'
  cell(item: T): Cell
}

export interface Rendering {
  readonly format: Format
  readonly isTerminal: boolean
  readonly color: boolean
  readonly now: Date
  /** Width of the terminal, if known. */
  readonly columns?: number | undefined
  /** Cuts every line to `columns`, also with `-o wide`, so that the table can be redrawn in place. */
  readonly isCut?: true
}

const disruptive = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Whether YAML has such characters: newlines separate its lines. */
const isDisruptive = (text: string): boolean => text.replaceAll('\n', '').search(disruptive) !== -1

/** JSON whose strings have no character that controls a terminal. Programs read the same. */
export const jsonText = (value: unknown, indent?: number): string =>
  (JSON.stringify(value, null, indent) ?? 'null').replace(disruptive, (each) => (each === '\n' ? each : hex(each)))

/** Omits undefined fields like JSON. The result means the same in YAML 1.1 and 1.2. */
async function toYaml(items: readonly unknown[]): Promise<string> {
  const { stringify } = await import('yaml')
  const plain: unknown = JSON.parse(JSON.stringify(items))
  const text = stringify(plain, { compat: 'yaml-1.1', lineWidth: 0, aliasDuplicateObjects: false })
  // JSON is YAML too, and can escape what YAML's plain texts cannot.
  return isDisruptive(text) ? `${jsonText(items, 2)}\n` : text
}

export async function render<T>(
  items: readonly T[],
  columns: readonly OutputColumn<T>[],
  how: Rendering,
): Promise<string> {
  const { format, isTerminal, now } = how
  if (format === 'json') return `${jsonText(items, 2)}\n`
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

/** Returns a function that renders one more row. The first one comes with the header. */
export async function growingTable<T>(
  columns: readonly OutputColumn<T>[],
  how: Rendering,
): Promise<(item: T) => string> {
  const { format, isTerminal } = how
  const style = { color: how.color }
  const shown = shownOf(columns, how).filter(({ terminal }) => terminal !== 'room')
  const headers = shown.map((column) => column.header)
  let widths = headers.map((header) => header.length)
  let isFirst = true
  return (item) => {
    // Times are absolute, because printed lines cannot change.
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

/** With `-o wide`, shows all columns even if they do not fit. */
const limitsOf = <T>(shown: readonly OutputColumn<T>[], format: Format): TableLimits => ({
  keeps: shown.map(({ keep }) => (keep === 'wide' ? (format === 'wide' ? 'whole' : undefined) : keep)),
  overflows: format === 'wide',
})

/** `now` is defined on a terminal only. */
export function cellText(cell: Cell, now: Date | undefined): string {
  if (cell === undefined) return now ? '-' : ''
  if (typeof cell !== 'object') return visible(String(cell))
  if ('plain' in cell) return visible(now ? cell.shown : String(cell.plain))
  return now ? ago(cell.time, now) : visible(cell.time)
}

/** Escapes control characters, which would break the table or control the terminal. */
export const visible = (text: string): string =>
  text.replace(disruptive, (character) => escapes[character] ?? hex(character))

const escapes: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' }
const hex = (character: string): string => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`

const units = [
  { seconds: 86_400, name: 'd' },
  { seconds: 3_600, name: 'h' },
  { seconds: 60, name: 'min' },
] as const
const longAgoSeconds = 30 * 86_400

/** Returns "2 h ago", or the date if it is long ago. Invalid and future times stay unchanged. */
export function ago(time: string, now: Date): string {
  const seconds = Math.floor((now.getTime() - Date.parse(time)) / 1000)
  if (!(seconds >= -60)) return visible(time)
  if (seconds >= longAgoSeconds) return visible(time.slice(0, 10))
  const unit = units.find((candidate) => seconds >= candidate.seconds)
  return unit ? `${Math.floor(seconds / unit.seconds)} ${unit.name} ago` : 'just now'
}
