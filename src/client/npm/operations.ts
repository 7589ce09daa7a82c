// Inputs and outputs of every operation, mapped from the operation table. The package gets them printed as plain
// interfaces instead (scripts/client-types.ts), so that its users need no schema library.
import type { OperationTable } from '../../api/index.ts'
import type { BodyOf, ItemOf, MadeItemOf, Operation, ParamsOf, QueryOf, ResponseOf } from '../../api/operation.ts'
import type { CallOptions, ChangeOptions } from './options.ts'

type Table = OperationTable
type IdsWith<Shape> = { [Id in keyof Table]: Table[Id] extends Shape ? Id : never }[keyof Table]
type Published = Exclude<keyof Table, IdsWith<{ isUnpublished: true }>>
/** Operations that `hasMethod` of offered.ts excludes. */
type WithoutMethod = IdsWith<
  { isUpgrade: true } | { isUpload: string } | { isDownload: true } | { consumes: string } | { noun: 'uploads' }
>

/** Paths below a namespace default to the namespace of the client. */
type Defaulted<O extends Operation> = O['path'] extends `${string}{namespace}/${string}` ? 'namespace' : never
type Path<O extends Operation> = Omit<ParamsOf<O>, Defaulted<O>> & { [Name in Defaulted<O>]?: string }
type WatchQuery = 'watch' | 'resourceVersion'
type Query<O extends Operation> = [QueryOf<O>] extends [undefined]
  ? unknown
  : { query?: Omit<NonNullable<QueryOf<O>>, WatchQuery> }
type Body<O extends Operation> = [BodyOf<O>] extends [undefined]
  ? unknown
  : O extends { bodyIsOptional: true }
    ? { body?: BodyOf<O> }
    : { body: BodyOf<O> }
type Own<O extends Operation> = Path<O> & Query<O> & Body<O>
type Input<O extends Operation> = (O extends { method: 'POST' } ? ChangeOptions : CallOptions) & Own<O>
type Arguments<O extends Operation> = object extends Own<O> ? [input?: Input<O>] : [input: Input<O>]
type Answer<O extends Operation> = O extends { produces: string } ? string : ResponseOf<O>

export type Methods = {
  [Id in Exclude<Published, WithoutMethod>]: (...input: Arguments<Table[Id]>) => Promise<Answer<Table[Id]>>
}
/** Lists that can be watched, with their items. */
export type Watchable = { [Id in Published & IdsWith<{ item: object }>]: ItemOf<Table[Id]> }
/** All lists, with their items. */
export type Lists = Watchable & { [Id in Published & IdsWith<{ madeOf: object }>]: MadeItemOf<Table[Id]> }
/** Operations whose answers can be read as a stream, with their inputs. */
export type Streams = {
  [Id in Published & IdsWith<{ isStream: true } | { isDownload: true }>]: Input<Table[Id]>
}
