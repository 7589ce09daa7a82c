// Which rows a table shows: those with every word that is searched for, and with the value of every filter. Pure; what is searched
// and chosen stands in the address, so that a link shows the same.

/** A choice above a table: rows that have one value. */
export interface Filter<T> {
  /** Its name in the address. */
  readonly param: string
  readonly label: string
  readonly of: (row: T) => string | readonly string[] | undefined
  /** How a value is shown, if not as it is. */
  readonly wordOf?: (value: string) => string
}

const valuesIn = <T>({ of }: Filter<T>, row: T): readonly string[] => {
  const value = of(row)
  return value === undefined ? [] : typeof value === 'string' ? [value] : value
}

const collator = new Intl.Collator('en', { numeric: true })

/** What a filter offers: values that occur, in order, and the one that is chosen even if it occurs no longer. */
export function offeredBy<T>(filter: Filter<T>, rows: readonly T[], chosen: string): readonly string[] {
  const values = new Set(rows.flatMap((row) => valuesIn(filter, row)))
  if (chosen !== '') values.add(chosen)
  return [...values].sort(collator.compare)
}

/** The same list if nothing is chosen. */
export function filtered<T>(rows: readonly T[], filters: readonly Filter<T>[], params: URLSearchParams): readonly T[] {
  const chosen = filters.flatMap((filter) => {
    const value = params.get(filter.param)
    return value ? [{ filter, value }] : []
  })
  if (chosen.length === 0) return rows
  return rows.filter((row) => chosen.every(({ filter, value }) => valuesIn(filter, row).includes(value)))
}

/** Rows that have every word somewhere in their text; the same list if there are none. */
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

/** `-memory`: by memory, from the end. */
export const sortText = ({ column, isDown }: Sort): string => `${isDown ? '-' : ''}${slug(column)}`

/** What the address says of the columns that there are; otherwise what the table has at first. */
export function sortFrom(text: string | null, titles: readonly string[], first: Sort): Sort {
  const isDown = text?.startsWith('-') ?? false
  const column = titles.find((title) => slug(title) === text?.slice(isDown ? 1 : 0))
  return column === undefined ? first : { column, isDown }
}

export const inOrder = <T>(rows: readonly T[], by: (row: T) => string | number, isDown: boolean): readonly T[] => {
  const sign = isDown ? -1 : 1
  // Read once each: ten thousand rows are compared some hundred thousand times.
  return rows
    .map((row) => ({ row, key: by(row) }))
    .sort((a, b) => sign * compare(a.key, b.key))
    .map(({ row }) => row)
}

const compare = (a: string | number, b: string | number): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b))
