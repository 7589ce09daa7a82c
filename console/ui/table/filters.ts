// Search, filters and order of table rows. The URL holds all three, so a link reproduces the view.

/** A select above a table that keeps the rows with one value. */
export interface Filter<T> {
  /** The URL parameter. */
  readonly param: string
  readonly label: string
  readonly of: (row: T) => string | readonly string[] | undefined
  /** Defaults to the values that occur. */
  readonly choices?: readonly string[]
  /** The label of a value. */
  readonly labelOf?: (value: string) => string
}

const valuesIn = <T>({ of }: Filter<T>, row: T): readonly string[] => {
  const value = of(row)
  return value === undefined ? [] : typeof value === 'string' ? [value] : value
}

const collator = new Intl.Collator('en', { numeric: true })

/** The values that occur, sorted, with the number of rows of each. */
export function occurringIn<T>(filter: Filter<T>, rows: readonly T[]) {
  const counts = new Map<string, number>()
  for (const row of rows) for (const value of valuesIn(filter, row)) counts.set(value, (counts.get(value) ?? 0) + 1)
  return { counts, values: [...counts.keys()].sort(collator.compare) }
}

/** Includes the chosen value even if no row has it any longer. */
export const withChosen = (values: readonly string[], chosen: string): readonly string[] =>
  chosen === '' || values.includes(chosen) ? values : [...values, chosen].sort(collator.compare)

/** Returns the same array if no filter is set. */
export function filtered<T>(rows: readonly T[], filters: readonly Filter<T>[], params: URLSearchParams): readonly T[] {
  const chosen = filters.flatMap((filter) => {
    const value = params.get(filter.param)
    return value ? [{ filter, value }] : []
  })
  if (chosen.length === 0) return rows
  return rows.filter((row) => chosen.every(({ filter, value }) => valuesIn(filter, row).includes(value)))
}

/** Rows that contain every word; the same array if there are none. */
export function searched<T>(rows: readonly T[], typed: string, textOf: (row: T) => string): readonly T[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return rows
  return rows.filter((row) => {
    const text = textOf(row).toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

interface Sort {
  readonly column: string
  readonly isDown: boolean
}

const slug = (title: string): string => title.toLowerCase().replaceAll(/\W+/g, '-')

/** `-memory` for descending order by memory. */
export const sortText = ({ column, isDown }: Sort): string => `${isDown ? '-' : ''}${slug(column)}`

/** Falls back to `first` if the URL names no column of this table. */
export function sortFrom(text: string | null, titles: readonly string[], first: Sort): Sort {
  const isDown = text?.startsWith('-') ?? false
  const column = titles.find((title) => slug(title) === text?.slice(isDown ? 1 : 0))
  return column === undefined ? first : { column, isDown }
}

interface Order<T> {
  readonly by: (row: T) => string | number
  readonly isDown: boolean
  /** Breaks ties. */
  readonly keyOf: (row: T) => string
}

export function inOrder<T>(rows: readonly T[], { by, isDown, keyOf }: Order<T>): readonly T[] {
  const sign = isDown ? -1 : 1
  // Each key is computed once rather than in every comparison: a table can have 10,000 rows.
  const keyed = rows.map((row) => {
    const value = by(row)
    return { row, value: typeof value === 'string' ? natural(value) : value, name: natural(keyOf(row)) }
  })
  return keyed.sort((a, b) => sign * compare(a.value, b.value) || compare(a.name, b.name)).map(({ row }) => row)
}

/** `vm-2` becomes `vm-0000000002`, so that it sorts before `vm-10`. */
const natural = (text: string): string => text.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(10, '0'))

const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0)
