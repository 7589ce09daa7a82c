// Which rows a table shows: those with every word that is searched for, and with the value of every filter. Pure; what is searched
// and chosen stands in the address, so that a link shows the same. Counts and orders are carried on from the last ones.
import { changesBetween } from './changes.ts'

/** A choice above a table: rows that have one value. */
export interface Filter<T> {
  /** Its name in the address. */
  readonly param: string
  readonly label: string
  /** Of a row always the same, unless it is said what is offered. */
  readonly of: (row: T) => string | readonly string[] | undefined
  /** Left out: the values that occur. */
  readonly offers?: readonly string[]
  /** How a value is shown, if not as it is. */
  readonly wordOf?: (value: string) => string
}

const valuesIn = <T>({ of }: Filter<T>, row: T): readonly string[] => {
  const value = of(row)
  return value === undefined ? [] : typeof value === 'string' ? [value] : value
}

const collator = new Intl.Collator('en', { numeric: true })

/** The values that occur in rows, in order, and how often each does. */
export interface Occurring {
  readonly counts: ReadonlyMap<string, number>
  readonly values: readonly string[]
}

export function occurringIn<T>(
  filter: Filter<T>,
  rows: readonly T[],
  before?: { readonly rows: readonly T[]; readonly result: Occurring },
): Occurring {
  const { gone, come } = before ? changesBetween(before.rows, rows) : { gone: [], come: rows }
  const counts = new Map(before?.result.counts)
  let isOther = false
  const add = (changed: readonly T[], by: number): void => {
    for (const row of changed)
      for (const value of valuesIn(filter, row)) {
        const count = (counts.get(value) ?? 0) + by
        isOther ||= count === 0 || count === by
        if (count === 0) counts.delete(value)
        else counts.set(value, count)
      }
  }
  add(come, 1)
  add(gone, -1)
  // The same list as long as it says the same: nothing is drawn again for it.
  return { counts, values: before && !isOther ? before.result.values : [...counts.keys()].sort(collator.compare) }
}

/** What a filter offers: what occurs, and what is chosen even if it occurs no longer. */
export const offered = (values: readonly string[], chosen: string): readonly string[] =>
  chosen === '' || values.includes(chosen) ? values : [...values, chosen].sort(collator.compare)

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

interface Order<T> {
  readonly by: (row: T) => string | number
  readonly isDown: boolean
  /** Decides between rows that are alike. */
  readonly keyOf: (row: T) => string
}

interface Ordered<T> {
  readonly rows: readonly T[]
  readonly result: readonly T[]
}

/** All of them, or carried on from the last order: what has come is put where it belongs among the rows that are there. */
export function inOrder<T>(rows: readonly T[], order: Order<T>, before?: Ordered<T>): readonly T[] {
  const { by, isDown, keyOf } = order
  const sign = isDown ? -1 : 1
  const { gone, come } = before ? changesBetween(before.rows, rows) : { gone: [], come: rows }
  // Read once each: ten thousand rows are compared some hundred thousand times.
  const keyed = (row: T): Keyed<T> => ({ row, key: by(row), name: keyOf(row) })
  const compared = (a: Keyed<T>, b: Keyed<T>): number =>
    sign * compare(a.key, b.key) || compare(a.name, b.name) || (a.name < b.name ? -1 : 1)
  const coming = come.map(keyed).sort(compared)
  if (!before) return coming.map(({ row }) => row)
  const left = new Set(gone)
  const staying = left.size === 0 ? before.result : before.result.filter((row) => !left.has(row))
  const merged: T[] = []
  let from = 0
  for (const each of coming) {
    const to = placeOf(staying, from, (row) => compared(keyed(row), each) <= 0)
    for (; from < to; from++) merged.push(staying[from] as T)
    merged.push(each.row)
  }
  for (; from < staying.length; from++) merged.push(staying[from] as T)
  return merged
}

interface Keyed<T> {
  readonly row: T
  readonly key: string | number
  readonly name: string
}

/** The first place, from one on, where it does not hold any more. */
function placeOf<T>(rows: readonly T[], from: number, holds: (row: T) => boolean): number {
  let [low, high] = [from, rows.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (holds(rows[middle] as T)) low = middle + 1
    else high = middle
  }
  return low
}

const compare = (a: string | number, b: string | number): number =>
  a === b ? 0 : typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b))
