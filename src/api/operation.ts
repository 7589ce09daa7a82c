// What an operation is: one value that server, client, command line, API document and tests all point at.
// An operation without a permission, a summary or an example does not compile; neither does one without a handler.
import * as t from 'typebox'
import type { Reason } from './errors.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/**
 * Who may call an operation.
 * anyone: no token. user: any valid token of a person or a service account. dev: the role in the namespace of the path.
 * admin: cluster administrators. agent: the agent of a node, for its own node. server: another server of the cluster.
 */
export type Allow = 'anyone' | 'user' | 'dev' | 'admin' | 'agent' | 'server'

export interface Operation {
  readonly id: string
  readonly noun: string
  readonly method: Method
  readonly path: string
  readonly allow: Allow
  readonly status: number
  /** Other successes than `status`, with what they mean. */
  readonly also?: { readonly [status: number]: string }
  readonly summary: string
  readonly description?: string
  readonly query?: t.TSchema
  readonly body?: t.TSchema
  /** Clients may leave the body out altogether. */
  readonly bodyIsOptional?: true
  /** Bodies that are not JSON: the parts of a form, each under its name in the schema, or an upload that has no form. */
  readonly consumes?: 'multipart/form-data' | 'application/octet-stream'
  readonly response: t.TSchema
  /** Set on lists: filters, paging, ETag and watch come with it. */
  readonly item?: t.TSchema
  /** Set on lists that are made for each answer, of such items: filters, paging and ETag come with it, but no watch. */
  readonly madeOf?: t.TSchema
  /**
   * Set on changes: where the request or its answer names what it changes, as a path (`params.namespace`, `body.server`).
   * Every change with it becomes an event.
   */
  readonly involves?: `params.${string}` | `body.${string}` | `answer.${string}`
  /** The kind of what it changes, where that is not the noun; by the answer, where that alone tells. */
  readonly involvesKind?: string | ((answer: unknown) => string)
  /**
   * Set on changes: what follows the caller's name in the event ("admin deleted VM w1"). `{name}` is what it changes, `{kind}`
   * its kind in a sentence; other placeholders are fields of the request or its answer. By `command` where one operation
   * has several.
   */
  readonly past?: string | { readonly [command: string]: string }
  /** Fields of the request that an event tells besides, none of them secret. */
  readonly tells?: readonly string[]
  /** The answer carries a secret: it is never kept, so an Idempotency-Key has no effect. */
  readonly secretAnswer?: true
  /** Said again it changes nothing: no answer is kept for its Idempotency-Key. */
  readonly isIdempotent?: true
  /** Answers that are not JSON. */
  readonly produces?: string
  /** The answer tells more than its record does: its version does not stand for it. */
  readonly isDerived?: true
  /** The answer goes on: the handler returns lines or bytes as they come. */
  readonly isStream?: true
  /** The answer is a file: `Range`, `Content-Length` and `HEAD` come with it. The handler says where its bytes are. */
  readonly isDownload?: true
  /** The request is a file, streamed to the handler: the name of its part in a form, or the whole body. */
  readonly isUpload?: string
  /** A WebSocket: the handler gets the connection. */
  readonly isUpgrade?: true
  /** Spoken between our own programs; not in the API document. */
  readonly isUnpublished?: true
  /** Refusals of its own, beyond those of every operation. */
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

/** Declares operations with the fields that they share. Without its own, an operation has status 200 and refuses nothing else. */
export const operationsOf =
  <const Shared extends Partial<Operation>>(shared: Shared) =>
  <const Own extends Omit<Operation, keyof Defaults | keyof Shared> & Partial<Operation>>(own: Own) =>
    ({ ...defaults, ...shared, ...own }) as unknown as Merged<Merged<Defaults, Shared>, Own>

export const operation = operationsOf({})

/** Query of every list. Sent as text, so that a wrong number is refused with a field name and not by coercion. */
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

/** Query of lists that are made for each answer (`madeOf`). */
export const MadeListQuery = t.Pick(ListQuery, ['limit', 'continue', 'labelSelector', 'fieldSelector'])

/** `continue` of the answers of all lists. */
export const Continue = t.Optional(t.String({ description: 'There are more items: pass this value' }))

interface ListInput {
  readonly id: string
  readonly noun: string
  readonly path: string
  readonly allow: Allow
  readonly summary: string
  readonly item: t.TSchema
  readonly refuses: readonly Reason[]
  readonly example: { readonly params?: { readonly [name: string]: string }; readonly item: unknown }
}

/** A list: `{"items":[…]}`, watchable, pageable, with filters. */
export function listOperation<const L extends ListInput>(list: L) {
  const { params, item } = list.example
  return {
    id: list.id as L['id'],
    noun: list.noun,
    method: 'GET',
    path: list.path as L['path'],
    allow: list.allow,
    status: 200,
    summary: list.summary,
    query: ListQuery,
    item: list.item as L['item'],
    response: listOf(list.item as L['item']),
    refuses: [...list.refuses, 'Expired'],
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

/** Names of the parameters in a path, in order. */
export const paramNames = (path: string): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string)

export const base = '/api/v1'
export const inNamespace = `${base}/namespaces/{namespace}` as const
