// A namespace has one name and may have two spellings: `orka-ios` is `svc-ios`. Records, tokens and rules know the name
// alone. Here, at the edge, every answer gets the spelling that its request used, or else the one of its creation.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { allOperations } from '../../api/index.ts'
import { realNamespace } from '../../rules/names.ts'
import type { Collections, NamespaceRecord } from '../../store/records/collections.ts'
import type { Settings } from '../config/settings.ts'

export interface SpellingServices {
  readonly collections: Pick<Collections, 'namespaces'>
  readonly settings: Pick<Settings, 'compat'>
}

/** Takes an answer as JSON text, or whole lines of one. */
export type Spell = (json: string) => string

/** As it was created, while that still is a spelling of its name. */
export const createdAs = ({ name, spelling }: NamespaceRecord, { settings }: Pick<SpellingServices, 'settings'>) =>
  spelling !== undefined && realNamespace(spelling, settings.compat.namespaceAliases) === name ? spelling : name

/** For answers that go on: namespaces may be created meanwhile. `used`: as the request spells them. */
export const spellingOf =
  (services: SpellingServices, used: readonly unknown[]): Spell =>
  (json) =>
    spellNow(services, used)?.(json) ?? json

/** Answers to agents and servers have names: these programs are ours. */
const spelled = new Set(
  allOperations.filter(({ allow }) => ['user', 'dev', 'admin'].includes(allow)).map(({ id }): string => id),
)

export function spellAnswers(app: FastifyInstance, services: SpellingServices): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const isText = typeof payload === 'string' || Buffer.isBuffer(payload)
    const isJson = isText && /^application\/json\b/.test(String(reply.getHeader('content-type')))
    const isForCaller = spelled.has(request.routeOptions.config?.operation ?? '')
    const spell = isJson && isForCaller ? spellNow(services, usedIn(request)) : undefined
    done(null, spell ? spell(String(payload)) : payload)
  })
}

/** The namespaces of a request, as it spells them. */
export function usedIn({ params, body, routeOptions }: FastifyRequest): unknown[] {
  const { name, namespace, serviceaccounts } = (body ?? {}) as Record<string, unknown>
  const accounts = Array.isArray(serviceaccounts) ? (serviceaccounts as readonly { namespace?: unknown }[]) : []
  return [
    routeOptions.config.operation === 'createNamespace' ? name : namespace,
    ...accounts.map((account) => account?.namespace),
    (params as { namespace?: unknown }).namespace,
  ]
}

const nameOnly = /^[\w.-]{1,300}$/

/** Undefined where every namespace is written by its name. */
function spellNow(services: SpellingServices, used: readonly unknown[]): Spell | undefined {
  const created = createdSpellings(services)
  const shown = new Map(created)
  for (const name of used) {
    if (typeof name !== 'string' || !nameOnly.test(name)) continue
    const real = realNamespace(name, services.settings.compat.namespaceAliases)
    for (const known of [real, created.get(real) ?? real]) shown.set(known, name)
  }
  const others = [...shown].filter(([known, name]) => known !== name)
  if (others.length === 0) return undefined
  const names = new RegExp(
    `${notInName}(?:${others.map(([known]) => known.replaceAll('.', '\\.')).join('|')})(?![\\w-]|\\.\\w)`,
    'g',
  )
  return (json) => {
    if (!others.some(([known]) => json.includes(known))) return json
    return json.replace(places, (place) =>
      place.startsWith('"labels"') ? place : place.replace(names, (known) => shown.get(known) ?? known),
    )
  }
}

/** Name → the spelling of its creation, where that is another. Kept until a namespace changes. */
const kept = new WeakMap<object, { readonly rev: string; readonly spellings: ReadonlyMap<string, string> }>()
function createdSpellings(services: SpellingServices): ReadonlyMap<string, string> {
  const { view } = services.collections.namespaces
  const rev = view.revOf()
  const known = kept.get(view)
  if (known?.rev === rev) return known.spellings
  const all = view.range().map(({ value }) => [value.name, createdAs(value, services)] as const)
  const spellings = new Map(all.filter(([name, spelling]) => name !== spelling))
  kept.set(view, { rev, spellings })
  return spellings
}

/**
 * Where namespaces are in answers, as these are rendered. Names of records, descriptions and labels are their owners',
 * whatever they look like; so labels are taken out first. `owner` and `actor` are accounts, whose names do not change.
 */
const places = new RegExp(
  [
    '"labels":\\{[^{}]*\\}',
    '"(?:namespace|sourceNamespace|message|hint|errorMessage|warning|reason)":"(?:[^"\\\\]|\\\\.)*"',
    '"vm":"[^"/]+/[^"]*"',
    '"(?:vms|usedBy)":\\[[^\\]]*\\]',
    '"name":"[^"]*","customPods"',
    '"details":\\{"name":"[^"]*","kind":"namespaces"',
    '"involved":\\{"kind":"namespaces","name":"[^"]*"',
    '"description":"Saved from VM [a-z0-9-]+ in namespace [^" ]*"',
  ].join('|'),
  'g',
)

/**
 * Before a namespace: nothing that makes it a part of another name (an escaped line break does not), no slash but that of
 * its own path, and no kind that makes it the name of such a record, unless it says where that one is: `VM svc-ios/demo`.
 */
const notInName =
  '(?<!(?<!\\\\)[\\w.:-]|(?<!\\bnamespaces)/)(?:(?<!\\b(?:VM|[Ii]mage|ISO|[Nn]ode|account|configuration|job) )|(?=[\\w.-]+/))'

const always = ['namespace', 'sourceNamespace']

/** A field selector with names in place of spellings, as items have them before they are spelled. */
export function realSelector(services: SpellingServices, id: string, selector: string): string {
  const isAboutNamespaces =
    id === 'listEvents' && /(?:^|,)\s*involved\.kind\s*==?\s*namespaces\s*(?:,|$)/.test(selector)
  const fields = [...always, ...(id === 'listNamespaces' ? ['name'] : isAboutNamespaces ? ['involved.name'] : [])]
  return selector
    .split(',')
    .map((part) => {
      const [, before = '', field = '', value = ''] = /^(\s*([\w.]+)\s*(?:!=|==?)\s*)(\S+)\s*$/.exec(part) ?? []
      if (!fields.includes(field)) return part
      const real = realNamespace(value, services.settings.compat.namespaceAliases)
      return before + (id === 'listNamespaces' ? (createdSpellings(services).get(real) ?? real) : real)
    })
    .join(',')
}
