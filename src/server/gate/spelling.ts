// A namespace has one name and may have two spellings: `orka-ios` is `svc-ios`. Records, tokens and rules use only the
// name. Here, at the edge, every answer gets the spelling of its request, or else the one with which the namespace was
// created.
import type { FastifyRequest } from 'fastify'
import { allOperations } from '../../api/index.ts'
import { realNamespace } from '../../rules/names.ts'
import type { Collections, NamespaceRecord } from '../../store/records/collections.ts'
import type { Settings } from '../config/settings.ts'
import type { App } from './charges.ts'

export interface SpellingServices {
  readonly collections: Pick<Collections, 'namespaces'>
  readonly settings: Pick<Settings, 'compat'>
}

/** Takes an answer as JSON text, or whole lines of a stream. */
export type Spell = (json: string) => string

/** The spelling with which a namespace was created, as long as the settings have that alias; else its name. */
export const createdAs = ({ name, spelling }: NamespaceRecord, { settings }: Pick<SpellingServices, 'settings'>) =>
  spelling !== undefined && realNamespace(spelling, settings.compat.namespaceAliases) === name ? spelling : name

/** Looks up spellings for each text, as namespaces may be created during a stream. `used`: those of the request. */
export const spellingOf =
  (services: SpellingServices, used: readonly unknown[]): Spell =>
  (json) =>
    spellNow(services, used)?.(json) ?? json

/** Operations of users. Agents and servers always get names. */
const spelled = new Set(
  allOperations.filter(({ allow }) => ['user', 'dev', 'admin'].includes(allow)).map(({ id }): string => id),
)

/** How the answer to a request is spelled. Undefined: by names only. */
export const spellingFor = (services: SpellingServices, request: FastifyRequest): Spell | undefined =>
  spelled.has(request.routeOptions.config?.operation ?? '') ? spellNow(services, usedIn(request)) : undefined

/** Lists spell their items themselves, and send bytes. */
export function spellAnswers(app: App, services: SpellingServices): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const isJson = /^application\/json\b/.test(String(reply.getHeader('content-type')))
    const spell = isJson && typeof payload === 'string' ? spellingFor(services, request) : undefined
    done(null, spell ? spell(String(payload)) : payload)
  })
}

/** The namespaces of a request, in its own spelling. */
export function usedIn({ params, body, routeOptions, headers }: FastifyRequest): unknown[] {
  const { name, namespace, serviceaccounts } = (body ?? {}) as Record<string, unknown>
  const accounts = Array.isArray(serviceaccounts) ? (serviceaccounts as readonly { namespace?: unknown }[]) : []
  return [
    routeOptions.config.operation === 'createNamespace' ? name : namespace,
    ...accounts.map((account) => account?.namespace),
    (params as { namespace?: unknown }).namespace,
    // The command line, called as orka3, also lists namespaces and records of the cluster in this spelling.
    ...(headers['user-agent'] === 'orka3-cli' ? ['orka-default'] : []),
  ]
}

const nameOnly = /^[\w.-]{1,300}$/

/** Returns undefined if every namespace is spelled by its name. */
function spellNow(services: SpellingServices, used: readonly unknown[]): Spell | undefined {
  const created = createdSpellings(services)
  const shown = new Map(created)
  for (const name of used) {
    if (typeof name !== 'string' || !nameOnly.test(name)) continue
    const real = realNamespace(name, services.settings.compat.namespaceAliases)
    if (real === name && !shown.has(name)) continue
    for (const known of [real, created.get(real) ?? real]) shown.set(known, name)
  }
  if (shown.size === 0) return undefined
  const others = [...shown].filter(([known, name]) => known !== name)
  if (others.length === 0) return undefined
  const respell = (text: string): string => text.replace(nameInText, (name) => shown.get(name) ?? name)
  return (json) => (others.some(([known]) => json.includes(known)) ? spellLines(json, respell) : json)
}

const spellLines = (json: string, respell: Respell): string =>
  json.replace(/[^\n]+/g, (line) => JSON.stringify(spellFields(JSON.parse(line), respell)))

type Respell = (text: string) => string

/** Fields that hold a namespace, `NAMESPACE/NAME`, or a text that svc3 wrote. Other fields belong to users. */
const respelled: ReadonlySet<string> = new Set(
  'namespace sourceNamespace vms usedBy message hint errorMessage warning reason'.split(' '),
)

function spellFields(value: unknown, respell: Respell): unknown {
  if (Array.isArray(value)) return value.map((each) => spellFields(each, respell))
  if (typeof value !== 'object' || value === null) return value
  const isNamespace = 'customPods' in value || ('kind' in value && value.kind === 'namespaces')
  const fields = Object.entries(value).map(([name, each]): [string, unknown] => {
    if (name === 'labels') return [name, each]
    const isOurs = respelled.has(name) || (isNamespace && name === 'name') || isPlace(name, each)
    return [name, isOurs ? spellTexts(each, respell) : spellFields(each, respell)]
  })
  return Object.fromEntries(fields)
}

/** Whether a field is the VM of an event or the generated description of an image, which name a namespace. */
const isPlace = (name: string, value: unknown): boolean =>
  (name === 'vm' && /\//.test(String(value))) || (name === 'description' && savedForm.test(String(value)))
const savedForm = /^Saved from VM [a-z0-9-]+ in namespace \S+\.$/

function spellTexts(value: unknown, respell: Respell): unknown {
  if (typeof value === 'string') return respell(value)
  return Array.isArray(value) ? value.map((each) => spellTexts(each, respell)) : spellFields(value, respell)
}

/** Name → the spelling of its creation, if that differs. Cached until a namespace changes. */
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
 * Matches a namespace in a text: a whole word, after a slash only in `namespaces/`, and after the kind of another
 * record only if a slash follows, as in `VM svc-ios/demo`.
 */
const nameInText =
  /(?<![\w.:-]|(?<!\bnamespaces)\/)(?:(?<!\b(?:VM|[Ii]mage|ISO|[Nn]ode|account|configuration|job) )|(?=[\w.-]+\/))\w[\w-]*(?:\.\w[\w-]*)*/g

const always = ['namespace', 'sourceNamespace']

/** Returns a field selector in which namespaces are spelled as the items of the list spell them. */
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
