// An operation of the API is one value. Server, client, command line, API document and tests derive from it. An operation
// without a permission, a summary, an example or a handler does not compile.
import * as t from 'typebox'
import type { Reason } from './errors.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/**
 * Who may call an operation.
 * anyone: no token. user: any valid token of a person or a service account. dev: the role in the namespace of the path.
 * admin: cluster administrators. agent: the agent of a node, for its own node. server: another server of the cluster.
 */
export type Allow = 'anyone' | 'user' | 'dev' | 'admin' | 'agent' | 'server'

/** Rights of administrators that a service account has only if it is allowed them besides its role. */
export const allowances = ['registrycredentials'] as const

export interface Operation {
  readonly id: string
  readonly noun: string
  readonly method: Method
  readonly path: string
  readonly allow: Allow
  /** Which service accounts that are administrators may call it: those with this right, or none. Default: all. */
  readonly accounts?: (typeof allowances)[number] | 'none'
  readonly status: number
  /** What other statuses than `status` mean. */
  readonly also?: { readonly [status: number]: string }
  readonly summary: string
  readonly description?: string
  readonly query?: t.TSchema
  readonly body?: t.TSchema
  /** Clients may omit the body. */
  readonly bodyIsOptional?: true
  /** For bodies other than JSON: a form whose parts have the names of the schema, or an upload without a form. */
  readonly consumes?: 'multipart/form-data' | 'application/octet-stream'
  readonly response: t.TSchema
  /** The schema of the items of a list, which has filters, paging, ETag and watch. */
  readonly item?: t.TSchema
  /** The schema of the items of a list that is computed per request, with filters, paging and ETag, but no watch. */
  readonly madeOf?: t.TSchema
  /**
   * Set on changes: which field of the request or response names the changed record (`params.namespace`, `body.server`).
   * Calls of such operations become events.
   */
  readonly involves?: `params.${string}` | `body.${string}` | `answer.${string}`
  /** The kind of the changed record if it is not the noun, if necessary from the response. */
  readonly involvesKind?: string | ((answer: unknown) => string)
  /**
   * Set on changes: what follows the caller's name in the event ("admin deleted VM w1"). `{name}` and `{kind}` stand for the
   * changed record, other placeholders for fields of the request or response. By `command` if the operation has several.
   */
  readonly past?: string | { readonly [command: string]: string }
  /** Other fields of the request that the event includes. They must not be secret. */
  readonly tells?: readonly string[]
  /** Calls for one record by one caller within a minute share an event, which has the fields of the last. */
  readonly mayRepeat?: true
  /** The response has a secret and is never stored, so an Idempotency-Key has no effect. */
  readonly secretAnswer?: true
  /** A repeated call changes nothing, so no response is stored for its Idempotency-Key. */
  readonly isIdempotent?: true
  /** The content type of responses other than JSON. */
  readonly produces?: string
  /** The response has more than the record, so the version of the record is no ETag for it. */
  readonly isDerived?: true
  /** The handler streams lines or bytes. */
  readonly isStream?: true
  /** The response is a file with `Range`, `Content-Length` and `HEAD`. The handler returns where its bytes are. */
  readonly isDownload?: true
  /** The request is a file that is streamed to the handler: the part of a form with this name, or the whole body. */
  readonly isUpload?: string
  /** The operation opens a WebSocket, which the handler gets. */
  readonly isUpgrade?: true
  /** Used between programs of svc3 only, and not in the API document. */
  readonly isUnpublished?: true
  /** Refusals other than those that every operation may return, and NotFound where the path has a parameter. */
  readonly refuses: readonly Reason[]
  readonly example: {
    readonly params?: { readonly [name: string]: string }
    readonly body?: unknown
    readonly response: unknown
  }
}

const defaults = { status: 200, refuses: [] } as const
type Defaults = typeof defaults
type Merged<Shared, Own> = Omit<Shared, keyof Own> & Own

/** Declares operations with the fields that they share. `status` defaults to 200, and `refuses` to no reasons. */
export const operationsOf =
  <const Shared extends Partial<Operation>>(shared: Shared) =>
  <const Own extends Omit<Operation, keyof Defaults | keyof Shared> & Partial<Operation>>(own: Own) =>
    ({ ...defaults, ...shared, ...own }) as unknown as Merged<Merged<Defaults, Shared>, Own>

export const operation = operationsOf({})

export const ListQuery = t.Object({
  limit: t.Optional(
    t.Integer({ minimum: 1, maximum: 1000, description: 'Maximum number of items; `continue` gets the next page' }),
  ),
  continue: t.Optional(t.String({ description: 'Value from the last page, to get the next one' })),
  labelSelector: t.Optional(t.String({ description: 'For example `team=ios,stage!=test`' })),
  fieldSelector: t.Optional(t.String({ description: 'For example `owner=me@example.com`' })),
  watch: t.Optional(t.Boolean({ description: 'Stream changes, one JSON object per line' })),
  resourceVersion: t.Optional(t.String({ description: 'With `watch`: stream the changes after this version' })),
})
export type ListQuery = t.Static<typeof ListQuery>

/** The query of lists that are computed for each request (`madeOf`). */
export const MadeListQuery = t.Pick(ListQuery, ['limit', 'continue', 'labelSelector', 'fieldSelector'])

/** The field `continue` of all list responses. */
export const Continue = t.Optional(t.String({ description: 'There are more items: pass this value' }))

interface ListInput {
  readonly id: string
  readonly noun: string
  readonly path: string
  readonly allow: Allow
  readonly accounts?: Operation['accounts']
  readonly summary: string
  readonly item: t.TSchema
  readonly refuses?: readonly Reason[]
  readonly example: { readonly params?: { readonly [name: string]: string }; readonly item: unknown }
}

/** Declares a list of records: `{"items":[…]}`, with filters, paging and watch. */
export function listOperation<const L extends ListInput>(list: L) {
  const { params, item } = list.example
  return {
    id: list.id as L['id'],
    noun: list.noun,
    method: 'GET',
    path: list.path as L['path'],
    allow: list.allow,
    ...(list.accounts && { accounts: list.accounts }),
    status: 200,
    summary: list.summary,
    query: ListQuery,
    item: list.item as L['item'],
    response: listOf(list.item as L['item']),
    refuses: [...(list.refuses ?? []), 'Expired'],
    example: { ...(params && { params }), response: { items: [item] } },
  } as const satisfies Operation
}

const listOf = <T extends t.TSchema>(item: T) => t.Object({ items: t.Array(item), continue: Continue })

type Names<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never
export type ParamsOf<O extends Operation> = { readonly [Name in Names<O['path']>]: string }
export type BodyOf<O extends Operation> = O extends { body: infer B extends t.TSchema } ? t.Static<B> : undefined
export type QueryOf<O extends Operation> = O extends { query: infer Q extends t.TSchema } ? t.Static<Q> : undefined
export type ResponseOf<O extends Operation> = t.Static<O['response']>
export type ItemOf<O extends Operation> = O extends { item: infer I extends t.TSchema } ? t.Static<I> : never
export type MadeItemOf<O extends Operation> = O extends { madeOf: infer I extends t.TSchema } ? t.Static<I> : never

export const paramNames = (path: string): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string)

export const base = '/api/v1'
export const inNamespace = `${base}/namespaces/{namespace}` as const
