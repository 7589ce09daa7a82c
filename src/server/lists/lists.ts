// Filters, pages and ETags of all lists, served from memory. An item is rendered once per change of its record.
import { badRequest, invalidField } from '../../api/errors.ts'
import type { ListQuery, Operation } from '../../api/operation.ts'
import {
  type Item,
  parseFieldSelector,
  parseLabelSelector,
  type SelectableFields,
  type Test,
} from '../../rules/selectors.ts'
import type { Entry, Rev } from '../../store/store.ts'
import { type Render, renderer } from '../http/render.ts'
import type { Listing } from './listing.ts'

/** Renders and caches the items of one list operation. */
export class ListRenderer {
  readonly #render: Render
  readonly #fields: SelectableFields
  readonly #real: (selector: string) => string
  readonly #items = new WeakMap<Entry<never>, string>()
  /** The last first page without filters, because scripts and dashboards poll the same list. */
  #polled: { readonly key: string; readonly body: Buffer; readonly rev: Rev } | undefined

  /** `real` replaces spellings of namespaces in a field selector by their names. */
  constructor(
    operation: Operation & { item: NonNullable<Operation['item']> },
    real: (selector: string) => string = String,
  ) {
    this.#real = real
    this.#render = renderer(operation.item)
    this.#fields = operation.item as SelectableFields
  }

  /** The revision of what a list of this scope shows. */
  rev(listing: Listing<unknown>): Rev {
    return listing.collection.view.revOf(encodeURIComponent(listing.scope))
  }

  list(listing: Listing<unknown>, query: ListQuery): { readonly body: string | Buffer; readonly rev: Rev } {
    const rev = this.rev(listing)
    const key = `${query.limit} ${listing.scope}`
    if (this.#polled?.key === key && this.#polled.rev === rev && isPlain(listing, query)) return this.#polled
    const page = { key, body: Buffer.from(this.#page(listing, query)), rev }
    if (isPlain(listing, query) && page.body.length <= maxPolledBytes) this.#polled = page
    return page
  }

  /** One item as JSON text, cached as long as the entry is current. */
  item(listing: Listing<unknown>, entry: Entry<never>): string {
    const known = listing.isDerived ? undefined : this.#items.get(entry)
    if (known !== undefined) return known
    const text = this.#render(listing.item(entry))
    if (listing.isDerived) return text
    // The renderer returns a string of many parts, which would take several times the memory and is walked for every
    // page.
    const whole = Buffer.from(text).toString()
    this.#items.set(entry, whole)
    return whole
  }

  /** Compiles the selectors of a query into a test of an item. Returns undefined without selectors. */
  test(query: ListQuery): Test | undefined {
    const parts = [
      ['labelSelector', query.labelSelector === undefined ? undefined : parseLabelSelector(query.labelSelector)],
      [
        'fieldSelector',
        query.fieldSelector === undefined
          ? undefined
          : parseFieldSelector(this.#real(query.fieldSelector), this.#fields),
      ],
    ] as const
    const tests: Test[] = []
    const causes = []
    for (const [field, parsed] of parts) {
      if (parsed?.ok) tests.push(parsed.test)
      else if (parsed) causes.push(invalidField(field, `${field}: ${parsed.problem}`))
    }
    if (causes.length > 0)
      throw badRequest(causes, 'Use owner=me@example.com, for example; separate several with commas')
    return tests.length === 0 ? undefined : (item) => tests.every((test) => test(item))
  }

  shows(listing: Listing<unknown>, test: Test | undefined, entry: Entry<never>): boolean {
    if (!isBetween(listing, entry.key)) return false
    if (!test && !listing.visible) return true
    const item = listing.item(entry)
    return (!listing.visible || listing.visible(item)) && (!test || test(item as Item))
  }

  #page(listing: Listing<unknown>, query: ListQuery): string {
    const test = this.test(query)
    const limit = query.limit ?? Number.POSITIVE_INFINITY
    const texts: string[] = []
    let last = ''
    // One more than the page tells whether there is a next one. With a filter, any number may be skipped.
    const maxRead = test || listing.visible ? Number.POSITIVE_INFINITY : limit + 1
    for (const entry of this.#from(listing, query.continue, maxRead)) {
      if (entry.key >= (listing.between?.before ?? '\uffff')) break
      if (!this.shows(listing, test, entry)) continue
      if (texts.length === limit)
        return `{"items":[${texts.join(',')}],"continue":${JSON.stringify(encodeContinue(last))}}`
      texts.push(this.item(listing, entry))
      last = entry.key
    }
    return `{"items":[${texts.join(',')}]}`
  }

  #from(listing: Listing<unknown>, token: string | undefined, limit: number): readonly Entry<never>[] {
    const last = token === undefined ? undefined : decodeContinue(token, listing.collection.prefix)
    const first = listing.between?.after
    const after = last !== undefined && first !== undefined && last < first ? first : (last ?? first)
    const page = after === undefined ? { limit } : { after, limit }
    return listing.collection.view.range(encodeURIComponent(listing.scope), page)
  }
}

const maxPolledBytes = 4 * 1_048_576

const isPlain = ({ visible, isDerived, between }: Listing<unknown>, query: ListQuery): boolean => {
  const { continue: token, labelSelector, fieldSelector } = query
  return !visible && !isDerived && !between && [token, labelSelector, fieldSelector].every((each) => each === undefined)
}

const isBetween = ({ between }: Listing<unknown>, key: string): boolean =>
  !between || (key > (between.after ?? '') && key < (between.before ?? '\uffff'))

/**
 * A page continues after a key rather than at a position, so that concurrent changes neither repeat nor hide other
 * items.
 */
const encodeContinue = (key: string): string => Buffer.from(key).toString('base64url')

function decodeContinue(token: string, prefix: string): string {
  const key = Buffer.from(token, 'base64url').toString('utf8')
  if (key.startsWith(prefix)) return key
  const cause = invalidField('continue', 'continue is not a value from a page of this list')
  throw badRequest([cause], 'List from the start, without continue')
}
