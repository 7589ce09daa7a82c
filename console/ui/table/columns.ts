// Which columns of a table are visible and how wide each is: by content or as the user chose. Names are cut last.
import { isObject, parseJson } from '../../../src/api/json.ts'

/**
 * `name` is cut last; `number`, `short` and `end` (actions) are never cut; `sentence` gets spare width; `wide` is
 * hidden in narrow tables and `lesser` already in small ones.
 */
type Look = 'name' | 'number' | 'short' | 'wide' | 'lesser' | 'sentence' | 'end'

export interface Choice {
  /** Width in pixels by column title. */
  readonly widths: Readonly<Record<string, number>>
  /** Visibility by column title. */
  readonly shown: Readonly<Record<string, boolean>>
}

export const noChoice: Choice = { widths: {}, shown: {} }

/** Ignores invalid stored values. */
export function choiceFrom(stored: string | null): Choice {
  const value = parseJson(stored ?? '')
  const { widths, shown } = isObject(value) ? value : {}
  return { widths: only(widths, isWidth), shown: only(shown, (each) => typeof each === 'boolean') }
}

const isWidth = (value: unknown): value is number =>
  typeof value === 'number' && value >= minPx && value <= maxResizedPx

function only<T>(values: unknown, is: (value: unknown) => value is T): Record<string, T> {
  const entries = typeof values === 'object' && values !== null ? Object.entries(values) : []
  return Object.fromEntries(entries.filter((entry): entry is [string, T] => is(entry[1])))
}

const minPx = 48
const maxResizedPx = 2_000
/** Clamps a width that the user chose. */
export const allowedWidth = (px: number): number => Math.round(Math.min(maxResizedPx, Math.max(minPx, px)))

interface ColumnSpec {
  readonly title: string
  readonly look?: string
}

const has = ({ look = '' }: Pick<ColumnSpec, 'look'>, one: Look): boolean => look.split(' ').includes(one)

/** Names and actions are always visible. */
export const isChoosable = (column: ColumnSpec): boolean => !has(column, 'name') && !has(column, 'end')

/** Table widths below which `lesser` and `wide` columns are hidden. */
const smallPx = 900
export const narrowPx = 640

export function shownColumns<C extends ColumnSpec>(
  columns: readonly C[],
  { shown }: Choice,
  tablePx: number,
): readonly C[] {
  return columns.filter((column) => {
    const chosen = isChoosable(column) ? shown[column.title] : true
    if (chosen !== undefined) return chosen
    return !(has(column, 'lesser') && tablePx < smallPx) && !(has(column, 'wide') && tablePx < narrowPx)
  })
}

/** The widths that the content and the title need. */
export interface MeasuredColumn extends ColumnSpec {
  readonly contentPx: number
  readonly titlePx: number
}

/** Longer content is cut unless there is spare width. */
const maxPx = 360
const maxNamePx = 640
/** The width kept for other content when names need space, for example for the state of a VM. */
const minContentPx = (tablePx: number): number => (tablePx < narrowPx ? 92 : 100)

/**
 * The width of each column. The sum is at least the width of the table, and larger only if no column can shrink
 * further.
 */
export function columnWidths(
  columns: readonly MeasuredColumn[],
  { widths }: Choice,
  tablePx: number,
): readonly number[] {
  // Below this width of names, the table scrolls sideways.
  const minNamePx = Math.max(120, 0.3 * tablePx)
  const sizes = columns.map((column) => {
    const chosen = widths[column.title]
    if (chosen !== undefined) return { wanted: chosen, least: chosen, grows: 0, isName: false }
    const natural = Math.max(column.contentPx, column.titlePx)
    if (has(column, 'end')) return { wanted: natural, least: natural, grows: 0, isName: false }
    const isName = has(column, 'name')
    const wanted = Math.ceil(Math.min(natural, isName ? maxNamePx : maxPx))
    const least = Math.min(
      wanted,
      has(column, 'number') || has(column, 'short')
        ? wanted
        : Math.max(minPx, column.titlePx, isName ? minNamePx : minContentPx(tablePx)),
    )
    return { wanted, least, grows: has(column, 'sentence') ? wanted * 1_000 : wanted, isName }
  })
  const sum = (of: (size: (typeof sizes)[number]) => number): number => sizes.reduce((all, each) => all + of(each), 0)
  const over = sum(({ wanted }) => wanted) - tablePx
  if (over <= 0) {
    const growing = sum(({ grows }) => grows)
    // Without a column that can grow, the last one takes the spare width.
    return sizes.map(({ wanted, grows }, index) =>
      growing > 0 ? wanted - (over * grows) / growing : index === sizes.length - 1 ? wanted - over : wanted,
    )
  }
  const spare = (isName: boolean): number => sum((each) => (each.isName === isName ? each.wanted - each.least : 0))
  const fromOthers = Math.min(over, spare(false))
  const fromNames = Math.min(over - fromOthers, spare(true))
  return sizes.map(({ wanted, least, isName }) => {
    const taken = isName ? fromNames / (spare(true) || 1) : fromOthers / (spare(false) || 1)
    return wanted - (wanted - least) * taken
  })
}
