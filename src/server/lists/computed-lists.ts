// Lists that are computed for each request: paged and filtered like stored ones, but without watch.
import { ApiError, badRequest, invalidField } from '../../api/errors.ts'
import type { ListQuery, Operation } from '../../api/operation.ts'
import type { Item } from '../../rules/selectors.ts'
import { ListRenderer } from './lists.ts'

interface ComputedList {
  readonly items: readonly Item[]
}
type Paged = (list: unknown, query: unknown) => unknown

/** Returns undefined for operations that do not answer with a computed list. */
export function computedList(
  operation: Operation,
  real: (selector: string) => string,
): { readonly check: (query: unknown) => void; readonly page: Paged } | undefined {
  const { madeOf } = operation
  if (!madeOf) return undefined
  const lists = new ListRenderer({ ...operation, item: madeOf }, real)
  return {
    check: (query) => refuseWatch((query ?? {}) as { watch?: unknown }),
    page(list, query) {
      const { limit = Number.POSITIVE_INFINITY, continue: token, ...selectors } = (query ?? {}) as ListQuery
      const test = lists.test(selectors)
      const { items, ...rest } = list as ComputedList
      const wanted = after(items, token).filter((item) => !test || test(item))
      const last = wanted.length > limit ? wanted[limit - 1] : undefined
      return { ...rest, items: wanted.slice(0, limit), ...(last && { continue: tokenOf(last) }) }
    },
  }
}

/** Refuses a watch, because its client would take the list for a stream that has ended. */
function refuseWatch({ watch }: { readonly watch?: unknown }): void {
  if (watch === undefined || watch === 'false') return
  const message = 'watch: this list cannot be watched'
  throw badRequest([invalidField('watch', message)], 'List it again with If-None-Match')
}

const tokenOf = ({ kind, namespace, name }: Item): string =>
  Buffer.from(JSON.stringify([kind ?? '', namespace ?? '', name])).toString('base64url')

function after(items: readonly Item[], token: string | undefined): readonly Item[] {
  if (token === undefined) return items
  const index = items.findIndex((item) => tokenOf(item) === token)
  if (index !== -1) return items.slice(index + 1)
  throw new ApiError('Expired', 'The last item of the previous page no longer exists', {
    hint: 'List from the start, without continue',
  })
}
