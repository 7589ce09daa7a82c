// Filters and pages of all lists, served from memory. The last rendered items and pages are kept (rendered-texts.ts).
import type { Readable } from 'node:stream'
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
import type { Spell } from '../gate/spelling.ts'
import { type Render, renderer } from '../http/render.ts'
import { bodyOf, type Reader } from '../transfer/pieces.ts'
import type { Listing } from './listing.ts'
import { pageParts } from './page.ts'
import { keepText, keptText } from './rendered-texts.ts'

/** Renders the items of one list operation. */
export class ListRenderer {
  readonly #render: Render
  readonly #fields: SelectableFields
  readonly #real: (selector: string) => string
  /** The last first page without filters, because scripts and dashboards poll the same list. */
  #polled: { readonly key: string } | undefined

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

  /** Throws for a wrong query. The records are those of now, and are rendered when the body is made. */
  list(
    listing: Listing<unknown>,
    query: ListQuery,
    spell: Spell | undefined,
  ): (reader: Reader) => Promise<Buffer | Readable> {
    const page = { key: `${this.rev(listing)} ${query.limit} ${listing.scope}` }
    const isKept = !spell && isPlain(listing, query)
    const known = isKept && this.#polled?.key === page.key ? keptText<Buffer>(this, this.#polled) : undefined
    if (known) return async () => known
    const parts = this.#page(listing, query, spell)
    return async (reader) => {
      const body = await bodyOf(reader, parts)
      if (!isKept || !(body instanceof Buffer)) return body
      this.#polled = page
      return keepText(this, page, body)
    }
  }

  /** One item as JSON text. */
  item(listing: Listing<unknown>, entry: Entry<never>): string {
    const known = listing.isDerived ? undefined : keptText<string>(this, entry)
    if (known !== undefined) return known
    const text = this.#render(listing.item(entry))
    // The renderer returns a string of many parts, which would take several times the memory and is walked for every
    // page.
    return listing.isDerived ? text : keepText(this, entry, Buffer.from(text).toString())
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

  #page(listing: Listing<unknown>, query: ListQuery, spell: Spell = String): Iterable<string> {
    const test = this.test(query)
    const { limit } = query
    const { completeSince } = listing
    const end = completeSince === undefined ? '}' : `,"completeSince":"${completeSince}"}`
    // One more than the page tells whether there is a next one. With a filter, any number may be skipped.
    const maxRead = test || listing.visible || limit === undefined ? Number.POSITIVE_INFINITY : limit + 1
    return pageParts({
      entries: this.#from(listing, query.continue, maxRead),
      limit,
      start: '{"items":[',
      shows: (entry) => this.shows(listing, test, entry),
      item: (entry) => spell(this.item(listing, entry)),
      end: (next) => (next ? `],"continue":${JSON.stringify(encodeContinue(next.lastKey))}${end}` : `]${end}`),
    })
  }

  #from(listing: Listing<unknown>, token: string | undefined, limit: number): readonly Entry<never>[] {
    const last = token === undefined ? undefined : decodeContinue(token, listing.collection.prefix)
    const first = listing.between?.after
    const after = last !== undefined && first !== undefined && last < first ? first : (last ?? first)
    const page = after === undefined ? { limit } : { after, limit }
    return listing.collection.view.range(encodeURIComponent(listing.scope), page)
  }
}

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
