// Audit log: every change becomes an event with caller, operation, time, request and outcome. The event is written
// before the answer is sent, so that the caller finds it; a controller limits the size of the log.
// controllers/record-events.ts records what happens without a caller.
import { isStored, nouns, type StoredNoun } from '../../api/nouns.ts'
import type { Operation } from '../../api/operation.ts'
import { displayName, type Principal } from '../../auth/principal.ts'
import { defaultNamespace, realNamespace } from '../../rules/names.ts'
import type { Collections } from '../../store/records/collections.ts'
import { newEvent } from '../../store/records/events.ts'
import type { Settings } from '../config/settings.ts'
import { recordRepeatable } from './repeated-events.ts'

interface Change {
  readonly operation: Operation
  readonly principal: Principal | undefined
  readonly requestId: string
  readonly requestKey: string | undefined
  readonly params: Readonly<Record<string, string>>
  readonly body: unknown
  readonly answer: unknown
  readonly at: Date
  /** The uid of the record before the change. */
  readonly uid?: string | undefined
}

interface AuditServices {
  readonly collections: Pick<Collections, 'events'> & InvolvedCollections
  readonly settings: Pick<Settings, 'compat'>
}

type InvolvedCollections = Pick<Collections, (typeof nouns)[StoredNoun]['records']>

function uidOf(collections: InvolvedCollections, kind: string, namespace: string, name: string): string | undefined {
  if (!isStored(kind) || name === '') return undefined
  const { records, scope } = nouns[kind]
  const record: unknown = collections[records].get(scope === 'cluster' ? '' : namespace, name)?.value
  return (record as { readonly uid?: string } | undefined)?.uid
}

/** Called before the operation, which may delete the record. */
export function uidBefore(
  { collections }: { readonly collections: InvolvedCollections },
  { involves, involvesKind = '', noun }: Operation,
  params: Change['params'],
): string | undefined {
  if (!involves?.startsWith('params.') || typeof involvesKind !== 'string') return undefined
  const name = params[involves.slice('params.'.length)] ?? ''
  return uidOf(collections, involvesKind || noun, params.namespace ?? '', name)
}

export async function recordChange({ collections, settings }: AuditServices, change: Change): Promise<void> {
  const { operation, principal, requestId, requestKey } = change
  if (!operation.involves) return
  const real = (name: string): string => realNamespace(name, settings.compat.namespaceAliases)
  const { involvesKind = operation.noun } = operation
  const kind = typeof involvesKind === 'string' ? involvesKind : involvesKind(change.answer)
  const named = namedBy(operation.involves, change)
  const name = kind === 'namespaces' ? real(named) : named
  // A host that joins, or a node that signs with its key, has no token.
  const caller = principal ?? ({ kind: 'agent', name, uid: '' } as const)
  const { reason, past } = wordsFor(operation, change)
  const namespace = namespaceOf(change)
  const uid = change.uid ?? uidOf(collections, kind, namespace, name)
  const event = newEvent(change.at, {
    type: 'Normal',
    reason,
    message: `${shortName(caller)} ${filled(past, { kind, name }, change, real)}${detailsOf(change)}`,
    involved: { kind, name, ...(uid !== undefined && { uid }) },
    actor: displayName(caller),
    requestId,
    ...(requestKey !== undefined && { requestKey }),
    outcome: 'Succeeded',
    audience: operation.allow === 'admin' ? 'admin' : 'dev',
  })
  if (operation.mayRepeat) await recordRepeatable(collections.events, namespace, event, change.at.getTime())
  else await collections.events.create(namespace, event.name, event)
}

function namespaceOf({ operation: { method, path }, params, answer }: Change): string {
  if (path.endsWith('{namespace}') && method === 'DELETE') return defaultNamespace
  return params.namespace ?? textIn(answer, 'namespace') ?? defaultNamespace
}

/** Returns words such as `StopVm` and `stopped VM {name}`. An operation with several commands has a reason for each. */
function wordsFor({ id, past = '' }: Operation, { body }: Change): { readonly reason: string; readonly past: string } {
  const command = typeof past === 'string' ? undefined : (textIn(body, 'command') ?? '')
  const reason = command === undefined ? id : id.replace(/^[a-z]+/, command)
  const words = typeof past === 'string' ? past : (past[command ?? ''] ?? '')
  return { reason: reason.charAt(0).toUpperCase() + reason.slice(1), past: words }
}

/** Users of the built-in provider are shown without their domain, which is always the same. */
function shortName(principal: Principal): string {
  if (principal.kind === 'serviceaccount') return `Service account ${principal.namespace}/${principal.name}`
  if (principal.kind === 'agent') return `Node ${principal.name}`
  return displayName(principal).replace(/@localhost$/, '')
}

const kindWords: Readonly<Record<string, string>> = { images: 'image', isos: 'ISO' }

const filled = (
  past: string,
  { kind, name }: { readonly kind: string; readonly name: string },
  { params, body, answer }: Change,
  real: (name: string) => string,
): string =>
  past.replaceAll(/\{(\w+)\}/g, (_, field: string) => {
    if (field === 'name') return name
    if (field === 'kind') return kindWords[kind] ?? kind
    const text = (textIn(body, field) ?? params[field] ?? textIn(answer, field) ?? 'unknown').slice(0, 300)
    return field === 'namespace' ? real(text) : text
  })

function textIn(value: unknown, field: string): string | undefined {
  const found = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[field] : undefined
  return typeof found === 'string' || typeof found === 'number' ? String(found) : undefined
}

function namedBy(path: string, { params, body, answer }: Change): string {
  let value: unknown = { params, body, answer }
  for (const step of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[step]
  return typeof value === 'string' ? value.slice(0, 300) : ''
}

/** ` (users ana@example.com; serviceaccounts svc-ios:jenkins)`: the request's fields that an event may show. */
function detailsOf({ operation, body }: Change): string {
  if (!operation.tells) return ''
  const fields = operation.tells.flatMap((field) => {
    const value = (body as Record<string, unknown> | undefined)?.[field]
    const text = [value]
      .flat()
      .filter((each) => each !== undefined)
      .map(textOf)
      .join(', ')
    return text === '' ? [] : [`${field} ${text}`]
  })
  return fields.length === 0 ? '' : ` (${fields.join('; ').slice(0, 500)})`
}

/** A service account as NAMESPACE:NAME. */
function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  const { namespace, name } = value as Readonly<Record<string, unknown>>
  return [namespace, name].filter((each) => each !== undefined).join(':')
}
