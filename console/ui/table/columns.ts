// Which columns of a table are shown, and how wide each is: by its content, by what somebody chose, and never so that a name is
// cut while another column still has room to give. Pure.

/** `name` is cut last; `number`, `short` and `end` (actions) never; `sentence` takes what is left over; `wide` leaves narrow tables, `lesser` already small ones. */
type Look = 'name' | 'number' | 'short' | 'wide' | 'lesser' | 'sentence' | 'end'

/** What somebody chose for one table; the rest follows the window. */
export interface Choice {
  /** By column, in pixels. */
  readonly widths: Readonly<Record<string, number>>
  /** By column: whether it is shown. */
  readonly shown: Readonly<Record<string, boolean>>
}

export const noChoice: Choice = { widths: {}, shown: {} }

/** What was stored, as far as it makes sense. */
export function choiceFrom(stored: string | null): Choice {
  try {
    const { widths, shown } = JSON.parse(stored ?? '{}') as Record<string, unknown>
    return { widths: only(widths, isWidth), shown: only(shown, (each) => typeof each === 'boolean') }
  } catch {
    return noChoice
  }
}

const isWidth = (value: unknown): value is number =>
  typeof value === 'number' && value >= leastPx && value <= maxChosenPx

function only<T>(values: unknown, is: (value: unknown) => value is T): Record<string, T> {
  const entries = typeof values === 'object' && values !== null ? Object.entries(values) : []
  return Object.fromEntries(entries.filter((entry): entry is [string, T] => is(entry[1])))
}

const leastPx = 48
const maxChosenPx = 2_000
/** What somebody may make of a column. */
export const allowedWidth = (px: number): number => Math.round(Math.min(maxChosenPx, Math.max(leastPx, px)))

interface Known {
  readonly title: string
  readonly look?: string
}

const has = ({ look = '' }: Pick<Known, 'look'>, one: Look): boolean => look.split(' ').includes(one)

/** A name says which row it is, and actions are found where they always are. */
export const isChoosable = (column: Known): boolean => !has(column, 'name') && !has(column, 'end')

/** Below these widths of the table, columns leave. */
const smallPx = 900
export const narrowPx = 640

export function shownColumns<C extends Known>(columns: readonly C[], { shown }: Choice, tablePx: number): readonly C[] {
  return columns.filter((column) => {
    const chosen = isChoosable(column) ? shown[column.title] : true
    if (chosen !== undefined) return chosen
    return !(has(column, 'lesser') && tablePx < smallPx) && !(has(column, 'wide') && tablePx < narrowPx)
  })
}

/** What its content would take, and its title. */
export interface Measured extends Known {
  readonly contentPx: number
  readonly titlePx: number
}

/** Longer content is cut, unless there is room; of a name only much longer. */
const maxPx = 360
const maxNamePx = 640
/** What is left of other content in favour of a name: a short word, the state of a VM for example. */
const leastContentPx = (tablePx: number): number => (tablePx < narrowPx ? 92 : 100)

/** The width of each column; together at least as wide as the table, and wider only if nothing more can be taken away. */
export function widthsOf(columns: readonly Measured[], { widths }: Choice, tablePx: number): readonly number[] {
  // Of a large part of the table a name is never deprived: rather is it scrolled sideways.
  const leastNamePx = Math.max(120, 0.3 * tablePx)
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
        : Math.max(leastPx, column.titlePx, isName ? leastNamePx : leastContentPx(tablePx)),
    )
    return { wanted, least, grows: has(column, 'sentence') ? wanted * 1_000 : wanted, isName }
  })
  const sum = (of: (size: (typeof sizes)[number]) => number): number => sizes.reduce((all, each) => all + of(each), 0)
  const over = sum(({ wanted }) => wanted) - tablePx
  if (over <= 0) {
    const growing = sum(({ grows }) => grows)
    // Where nothing may grow, the last one ends with the table.
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
