// What every list command does with names: prints all records or the named ones, and reports the missing.
import { notFound } from '../api/errors.ts'
import type { Context } from './command.ts'
import { nearestName } from './line/suggest.ts'
import type { Column } from './output/output.ts'

interface Chosen<T> {
  readonly kind: string
  readonly items: readonly T[]
  readonly nameOf: (item: T) => string
  /** Empty: all of them. */
  readonly wanted: readonly string[]
  readonly columns: readonly Column<T>[]
  /** Said on a terminal when there is nothing. */
  readonly none: string
  /** The command that shows all, without the program's name. */
  readonly listCommand: string
}

export async function printChosen<T>(context: Context, chosen: Chosen<T>): Promise<number> {
  const { kind, items, nameOf, wanted, columns, none, listCommand } = chosen
  const found = wanted.length === 0 ? items : items.filter((item) => wanted.includes(nameOf(item)))
  const missing = wanted.filter((name) => !found.some((item) => nameOf(item) === name))
  if (found.length > 0 || missing.length === 0) await context.print(found, columns, none)
  if (missing.length === 0) return 0
  const [first = ''] = missing
  const near = missing.length === 1 ? nearestName(first, items.map(nameOf)) : undefined
  const meant = near === undefined ? '' : `did you mean "${near}"? `
  throw notFound(kind, missing.join('", "'), `${meant}${context.host.calledAs} ${listCommand} shows what is there`)
}
