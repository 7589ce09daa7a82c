// A list of records as objects of a kind: selected, rendered, and remembered for as long as an entry is current.
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
import type { Lists } from '../lists/lists.ts'
import { type Kind, type KubeObject, objectOf } from './kinds/kind.ts'
import { type Renderer, rendered } from './render.ts'

type Selectors = Pick<ListQuery, 'labelSelector' | 'fieldSelector'>
type Aliases = Settings['compat']['namespaceAliases']

/** Kind → what its entries are as text. */
const texts = new WeakMap<Kind, WeakMap<object, string>>()

export class WireLists implements Pick<Lists, 'test' | 'shows' | 'item'> {
  readonly #renderer: Renderer
  readonly #namespace: string
  readonly #aliases: Aliases
  #isFirst = true

  /** `namespace`: of objects that are in every one. */
  constructor(renderer: Renderer, namespace: string, aliases: Aliases) {
    this.#renderer = renderer
    this.#namespace = namespace
    this.#aliases = aliases
  }

  object(listing: Listing<unknown>, entry: Entry<never>): KubeObject {
    const { kind } = this.#renderer
    const shown = kind.show(listing.item(entry) as never, entry.value)
    const { meta } = entry.value as { meta?: RecordMeta }
    return objectOf(kind, shown, { namespace: this.#namespace, rev: entry.rev, meta })
  }

  item(listing: Listing<unknown>, entry: Entry<never>): string {
    const { form, kind } = this.#renderer
    const isKept = form.as === 'object' && kind.scope !== 'shared' && !listing.isDerived
    if (!isKept) {
      const text = JSON.stringify(rendered(this.object(listing, entry), this.#renderer, this.#isFirst))
      this.#isFirst = false
      return text
    }
    const known = texts.get(kind) ?? new WeakMap<object, string>()
    texts.set(kind, known)
    const text = known.get(entry) ?? JSON.stringify(this.object(listing, entry))
    known.set(entry, text)
    return text
  }

  shows(listing: Listing<unknown>, test: Test | undefined, entry: Entry<never>): boolean {
    if (listing.visible && !listing.visible(listing.item(entry))) return false
    return !test || test(this.object(listing, entry))
  }

  test(query: Selectors): Test | undefined {
    return selectorTest(this.#renderer.kind, query, this.#aliases)
  }
}

/** The selectors of a query as a test on an object; undefined when there are none. */
export function selectorTest(kind: Kind, query: Selectors, aliases: Aliases): Test | undefined {
  const tests: Test[] = []
  const { labelSelector, fieldSelector } = query
  if (labelSelector !== undefined) {
    const test = parsed('labelSelector', parseLabelSelector(labelSelector))
    tests.push((object) => test({ labels: (object as unknown as KubeObject).metadata.labels }))
  }
  if (fieldSelector !== undefined) {
    const result = parseFieldSelector(realFields(selected(kind, fieldSelector), aliases), selectable(kind))
    const fields = selectableFields(kind).join(', ')
    tests.push(
      parsed(
        'fieldSelector',
        result.ok ? result : { ...result, problem: `${result.problem.split(': use one of ', 1)[0]}. Use ${fields}` },
      ),
    )
  }
  return tests.length === 0 ? undefined : (object: Item) => tests.every((test) => test(object))
}

function parsed(field: string, result: ReturnType<typeof parseLabelSelector>): Test {
  if (result.ok) return result.test
  throw badRequest([invalidField(field, `${field}: ${result.problem}`)])
}

/** Namespaces by their names, whichever way the client spells them. */
const realFields = (selector: string, aliases: Aliases): string =>
  selector
    .split(',')
    .map((part) => {
      const at = part.lastIndexOf('=')
      const isNamespace = /(?:^|\.)namespace\s*(?:!|=)?$/.test(part.slice(0, Math.max(0, at)).trim())
      return isNamespace ? part.slice(0, at + 1) + realNamespace(part.slice(at + 1).trim(), aliases) : part
    })
    .join(',')

/** Without conditions that every object meets. */
const selected = ({ ignoredSelectors = [] }: Kind, selector: string): string =>
  selector
    .split(',')
    .filter((part) => !ignoredSelectors.some((field) => part.trim().startsWith(`${field}=`)))
    .join(',')

/** The fields of a kind that a selector may name, as a schema. */
const selectableFields = ({ selectable: more = [] }: Kind): readonly string[] => [
  'metadata.name',
  'metadata.namespace',
  ...more,
]

function selectable(kind: Kind): SelectableFields {
  const root: Branch = { properties: {} }
  for (const path of selectableFields(kind)) {
    let at = root
    const steps = path.split('.')
    for (const [index, step] of steps.entries()) {
      at.properties ??= {}
      at.properties[step] ??= index === steps.length - 1 ? { type: 'string' } : { properties: {} }
      at = at.properties[step] as Branch
    }
  }
  return root
}

interface Branch {
  type?: string
  properties?: Record<string, Branch>
}
