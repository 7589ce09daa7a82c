// The objects of one kind that a caller may see: found by name, selected, and rendered for lists and watches.
import { badRequest, invalidField } from '../../api/errors.ts'
import type { ListQuery } from '../../api/operation.ts'
import { realNamespace } from '../../rules/names.ts'
import {
  type Item,
  parseFieldSelector,
  parseLabelSelector,
  type SelectableFields,
  type Test,
} from '../../rules/selectors.ts'
import type { RecordMeta } from '../../store/records/record-meta.ts'
import type { Entry } from '../../store/store.ts'
import type { Settings } from '../config/settings.ts'
import type { Listing } from '../lists/listing.ts'
import type { ListRenderer } from '../lists/lists.ts'
import { keepText, keptText } from '../lists/rendered-texts.ts'
import { type Kind, type KubeObject, objectOf } from './kinds/kind.ts'
import { type Renderer, rendered } from './render.ts'
import { objectNotFound } from './status.ts'

type Selectors = Pick<ListQuery, 'labelSelector' | 'fieldSelector'>
type Aliases = Settings['compat']['namespaceAliases']

export class KindObjects implements Pick<ListRenderer, 'test' | 'shows' | 'item'> {
  readonly listing: Listing<unknown>
  /** The namespace that shared objects appear in. */
  readonly namespace: string
  readonly #renderer: Renderer
  readonly #aliases: Aliases
  #isFirst = true

  constructor(
    { listing, namespace }: { readonly listing: Listing<unknown>; readonly namespace: string },
    renderer: Renderer,
    aliases: Aliases,
  ) {
    this.listing = listing
    this.namespace = namespace
    this.#renderer = renderer
    this.#aliases = aliases
  }

  /** Throws NotFound also for an object that the caller may not see. */
  entry(name: string): Entry<never> {
    const { collection, scope, visible, item } = this.listing
    const { kind } = this.#renderer
    const real = kind.isAliased ? realNamespace(name, this.#aliases) : name
    // A path without a namespace may name an object of any namespace.
    const isNamed = ({ value }: Entry<never>): boolean => (value as { name?: string }).name === real
    const entry = collection.get(scope, real) ?? (scope === '' ? collection.list().find(isNamed) : undefined)
    if (entry && (!visible || visible(item(entry)))) return entry
    throw objectNotFound(kind, name)
  }

  object(entry: Entry<never>): KubeObject {
    const { kind } = this.#renderer
    const { listing } = this
    const view = kind.show(listing.item(entry) as never, entry.value)
    const { meta } = listing.meta ? { meta: listing.meta(entry) } : (entry.value as { meta?: RecordMeta })
    return objectOf(kind, view, { namespace: this.namespace, rev: entry.rev, meta })
  }

  /** An object as JSON, for lists and watch events. Only the first table of a watch has column definitions. */
  item(_listing: Listing<unknown>, entry: Entry<never>): string {
    const { form, kind } = this.#renderer
    const isShareable = form.as === 'object' && kind.scope !== 'shared' && !this.listing.isDerived
    if (!isShareable) {
      const text = JSON.stringify(rendered(this.object(entry), this.#renderer, this.#isFirst))
      this.#isFirst = false
      return text
    }
    return keptText<string>(kind, entry) ?? keepText(kind, entry, JSON.stringify(this.object(entry)))
  }

  shows({ visible, item }: Listing<unknown>, test: Test | undefined, entry: Entry<never>): boolean {
    if (visible && !visible(item(entry))) return false
    return !test || test(this.object(entry))
  }

  test(query: Selectors): Test | undefined {
    return selectorTest(this.#renderer.kind, query, this.#aliases)
  }
}

/** The selectors of a query as a test of an object; undefined without selectors. */
export function selectorTest(kind: Kind, query: Selectors, aliases: Aliases): Test | undefined {
  const tests: Test[] = []
  const { labelSelector, fieldSelector } = query
  if (labelSelector !== undefined) {
    const test = parsed('labelSelector', parseLabelSelector(labelSelector))
    tests.push((object) => test({ labels: (object as unknown as KubeObject).metadata.labels }))
  }
  if (fieldSelector !== undefined) {
    const fields = ['metadata.name', 'metadata.namespace', ...(kind.selectable ?? [])]
    const result = parseFieldSelector(normalized(kind, fieldSelector, aliases), schemaOf(fields))
    const advise = (problem: string): string => `${problem.split(': use one of ', 1)[0]}. Use ${fields.join(', ')}`
    tests.push(parsed('fieldSelector', result.ok ? result : { ...result, problem: advise(result.problem) }))
  }
  return tests.length === 0 ? undefined : (object: Item) => tests.every((test) => test(object))
}

function parsed(field: string, result: ReturnType<typeof parseLabelSelector>): Test {
  if (result.ok) return result.test
  throw badRequest([invalidField(field, `${field}: ${result.problem}`)])
}

/** Drops conditions that the kind ignores, and spells namespaces as records do. */
const normalized = ({ ignoredSelectors = [] }: Kind, selector: string, aliases: Aliases): string =>
  selector
    .split(',')
    .filter((part) => !ignoredSelectors.some((field) => part.trim().startsWith(`${field}=`)))
    .map((part) => {
      const at = part.lastIndexOf('=')
      const isNamespace = /(?:^|\.)namespace\s*(?:!|=)?$/.test(part.slice(0, Math.max(0, at)).trim())
      return isNamespace ? part.slice(0, at + 1) + realNamespace(part.slice(at + 1).trim(), aliases) : part
    })
    .join(',')

interface Branch {
  type?: string
  properties?: Record<string, Branch>
}

/** The selectable fields as the schema that the parser of selectors reads. */
function schemaOf(paths: readonly string[]): SelectableFields {
  const root: Branch = {}
  for (const path of paths) {
    let at = root
    for (const step of path.split('.')) {
      at.properties ??= {}
      at = at.properties[step] ??= {}
    }
    at.type = 'string'
  }
  return root as SelectableFields
}
