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
  /** Where they are; none for what the whole cluster shares. */
  readonly namespace?: string | undefined
}

export async function printChosen<T>(context: Context, chosen: Chosen<T>): Promise<number> {
  const { kind, items, nameOf, wanted, columns, none, namespace } = chosen
  const found = wanted.length === 0 ? items : items.filter((item) => wanted.includes(nameOf(item)))
  const missing = wanted.filter((name) => !found.some((item) => nameOf(item) === name))
  if (found.length > 0 || missing.length === 0) await context.print(found, columns, none)
  if (missing.length === 0) return 0
  const [first = ''] = missing
  const near = missing.length === 1 ? nearestName(first, items.map(nameOf)) : undefined
  const error = notFound(kind, missing.join(', '), { namespace })
  if (near === undefined) throw error
  throw notFound(kind, first, { namespace, hint: `Did you mean ${near}? ${error.options.hint ?? ''}`.trim() })
}
