// Audit log: every change becomes an event with caller, operation, time, request and outcome. Written after the change
// and before its answer, so that the caller finds it; a controller bounds the log.
import { randomBytes } from 'node:crypto'
import type { Operation } from '../../api/operation.ts'
import { displayName, type Principal } from '../../auth/principal.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { defaultNamespace } from '../../rules/names.ts'
import type { Collections } from '../../store/records/collections.ts'

interface Change {
  readonly operation: Operation
  readonly principal: Principal | undefined
  readonly requestId: string
  readonly params: Readonly<Record<string, string>>
  readonly body: unknown
  readonly answer: unknown
}

/** Distinguishes the events of this process from others of the same millisecond. */
const recorder = randomBytes(6).toString('hex')
let count = 0

/** In order of time and, within a millisecond, in the order in which this server recorded them. */
function eventId(now: Date): string {
  count += 1
  return `${now.getTime().toString(36).padStart(9, '0')}-${count.toString(36).padStart(6, '0')}-${recorder}`
}

export async function recordChange(
  { collections, clock }: { readonly collections: Pick<Collections, 'events'>; readonly clock: Clock },
  change: Change,
): Promise<void> {
  const { operation, principal, requestId, params } = change
  if (!operation.involves) return
  const now = clock.now()
  const actor = principal ? displayName(principal) : 'anonymous'
  const { id: reason, summary } = operation
  const name = namedBy(operation.involves, change)
  const id = eventId(now)
  await collections.events.create(namespaceOf(change), id, {
    name: id,
    type: 'Normal',
    reason: reason.charAt(0).toUpperCase() + reason.slice(1),
    message: `${actor}: ${summary.charAt(0).toLowerCase()}${summary.slice(1)}: ${name}${detailsOf(change)}`,
    involved: { kind: operation.noun, name },
    actor,
    requestId,
    outcome: 'Succeeded',
    at: timestamp(now),
    audience: operation.allow === 'admin' ? 'admin' : 'dev',
  })

  /** Events about a namespace are in it; those about the cluster, in the default one. */
  function namespaceOf({ operation: { method, path } }: Change): string {
    const isAboutItself = path.endsWith('{namespace}') && method === 'DELETE'
    return (isAboutItself ? undefined : params.namespace) ?? defaultNamespace
  }
}

function namedBy(path: string, { params, body, answer }: Change): string {
  let value: unknown = { params, body, answer }
  for (const step of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[step]
  return typeof value === 'string' ? value.slice(0, 300) : ''
}

/** ` (users ana@example.com; serviceaccounts svc-ios:jenkins)`: the fields of the request that an event may show. */
function detailsOf({ operation, body }: Change): string {
  if (!operation.tells) return ''
  const told = operation.tells.flatMap((field) => {
    const value = (body as Record<string, unknown> | undefined)?.[field]
    const text = [value]
      .flat()
      .filter((each) => each !== undefined)
      .map(textOf)
      .join(', ')
    return text === '' ? [] : [`${field} ${text}`]
  })
  return told.length === 0 ? '' : ` (${told.join('; ').slice(0, 500)})`
}

const textOf = (value: unknown): string =>
  typeof value === 'object' && value !== null ? Object.values(value).toReversed().join(':') : String(value)
