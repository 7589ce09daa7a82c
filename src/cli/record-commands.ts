// Builds commands that most kinds of records have: list, show, delete, and changes that are one request. The modules of
// commands declare the operation, the columns or fields, and the texts.
import { notFound } from '../api/errors.ts'
import { allNouns, isListed } from '../api/nouns.ts'
import { type Operation, paramNames, type ResponseOf } from '../api/operation.ts'
import type { Client } from '../client/client.ts'
import { allNamespacesOption, listNamespaced } from './all-namespaces.ts'
import {
  type Argument,
  type Arguments,
  type Command,
  type Context,
  defineCommand,
  namespaced,
  type Options,
  printed,
  type Session,
  type Values,
} from './command.ts'
import { yesOption } from './confirm.ts'
import { deleteEach } from './delete-each.ts'
import { nearestName } from './line/suggest.ts'
import { UsageError } from './line/usage.ts'
import type { OutputColumn } from './output/output.ts'
import { type Field, recordText } from './output/record.ts'

interface CommandText {
  readonly description?: string
  readonly examples: Command['examples']
}

/** A client for operations that are known only at run time. */
interface AnyClient {
  call<O extends Operation>(operation: O, input: object): Promise<ResponseOf<O>>
  listAll<O extends Operation>(operation: O, input: object): Promise<ItemOf<O>[]>
}
const anyClient = (client: Client): AnyClient => client as unknown as AnyClient

type ItemOf<O extends Operation> = ResponseOf<O> extends { readonly items: readonly (infer Item)[] } ? Item : never

/** The last parameter of an operation's path names the record. */
const paramsOf = ({ path }: Operation, namespace: string, name: string) => ({
  [paramNames(path).at(-1) ?? '']: name,
  namespace,
})

/** The words for the records of an operation. */
function wordsOf({ noun }: Operation) {
  const { wire = '', word = '', command = '' } = allNouns.find(([name]) => name === noun)?.[1] ?? {}
  const one = /^[A-Z]{2}/.test(word) ? word : word.toLowerCase()
  return { kind: wire, one, many: `${one}s`, listCommand: command, names: isListed(noun) ? { names: noun } : {} }
}

interface ListText<O extends Operation> extends CommandText {
  readonly argument?: Partial<Argument>
  readonly list: O
  readonly columns: readonly OutputColumn<ItemOf<O>>[]
  /** `all`: has -A. `namespace`: lists one namespace. `cluster`: the records belong to no namespace. */
  readonly scope: 'all' | 'namespace' | 'cluster'
  /** Further options, and whether they keep a record. */
  readonly filters?: Options
  isMeant?(item: ItemOf<O>, options: Readonly<Record<string, unknown>>): boolean
  nameOf?(item: ItemOf<O>): string
  /** Turns an argument into the name of a record. Throws for an invalid one. */
  parseName?(text: string): string
  /** Printed when there are no records. */
  emptyHint?(session: Session): string
  /** Prints notes below the table. `isNamed`: whether the caller named records. */
  notes?(context: Context, items: readonly ItemOf<O>[], session: Session, isNamed: boolean): void
}

export function listCommand<const O extends Operation>(text: ListText<O>): Command {
  const { list, columns, scope, argument, parseName = (name) => name } = text
  const { kind, many, names } = wordsOf(list)
  const { nameOf = (item) => (item as { readonly name: string }).name } = text
  return defineCommand({
    ...(text.description !== undefined && { description: text.description }),
    arguments: { names: { value: 'NAME', description: `only these ${many}`, ...names, ...argument, repeatable: true } },
    options: {
      ...text.filters,
      ...(scope === 'all' ? allNamespacesOption : {}),
      ...namespaced,
      ...printed,
    } as typeof listOptions,
    examples: text.examples,
    async run(context, { args, options }) {
      const wanted = args.names.map(parseName)
      const session = await context.connect()
      const listed = await listNamespaced<ItemOf<O> & { readonly namespace: string }>(
        context,
        session,
        options['all-namespaces'],
        columns,
        (namespace) =>
          anyClient(session.client).listAll(list, { params: { namespace }, signal: context.signal }) as never,
      )
      const where = scope === 'cluster' ? 'the cluster' : listed.where
      return printChosen(context, {
        ...listed,
        items: listed.items.filter((item) => text.isMeant?.(item, options) ?? true),
        namespace: scope === 'cluster' ? undefined : listed.namespace,
        kind,
        nameOf,
        wanted,
        none: `No ${many} in ${where}${text.emptyHint ? `. ${text.emptyHint(session)}` : ''}`,
        notes: (items) => text.notes?.(context, items, session, wanted.length > 0),
      })
    },
  })
}
const listOptions = { ...allNamespacesOption, ...namespaced, ...printed }

interface Chosen<T> {
  readonly kind: string
  readonly items: readonly T[]
  readonly nameOf: (item: T) => string
  /** Names of the wanted records; empty for all. */
  readonly wanted: readonly string[]
  readonly columns: readonly OutputColumn<T>[]
  /** Printed on a terminal in place of an empty table. */
  readonly none: string
  /** Undefined for records of the cluster. */
  readonly namespace?: string | undefined
  notes?(items: readonly T[]): void
}

/** Prints all records or the named ones. Throws if one is missing. */
export async function printChosen<T>(context: Context, chosen: Chosen<T>): Promise<number> {
  const { kind, items, nameOf, wanted, columns, none, namespace } = chosen
  const found = wanted.length === 0 ? items : items.filter((item) => wanted.includes(nameOf(item)))
  const missing = wanted.filter((name) => !found.some((item) => nameOf(item) === name))
  if (found.length > 0 || missing.length === 0) await context.print(found, columns, none)
  chosen.notes?.(found)
  if (missing.length === 0) return 0
  const [first = ''] = missing
  const near = missing.length === 1 ? nearestName(first, items.map(nameOf)) : undefined
  const error = notFound(kind, missing.join(', '), { namespace })
  if (near === undefined) throw error
  throw notFound(kind, first, { namespace, hint: `Did you mean ${near}? ${error.options.hint ?? ''}`.trim() })
}

interface ShowText<O extends Operation> extends CommandText {
  readonly argument: Argument
  readonly get: O
  readonly fields: readonly Field<ResponseOf<O>>[]
}

export const showCommand = <const O extends Operation>({ argument, get, fields, ...text }: ShowText<O>): Command =>
  defineCommand({
    ...text,
    arguments: { name: { ...argument, required: true } },
    options: { ...namespaced, ...printed },
    async run(context, { args: { name } }) {
      const { client, namespace } = await context.connect()
      const params = paramsOf(get, namespace, name)
      return printRecord(context, await anyClient(client).call(get, { params, signal: context.signal }), fields)
    },
  })

/** Prints one record in full, or as data. */
export async function printRecord<T>(context: Context, record: T, fields: readonly Field<T>[]): Promise<number> {
  if (context.isData) await context.print([record], [], '')
  else context.host.stdout.write(recordText(record, fields, context.rendering()))
  return 0
}

interface DeleteText<O extends Operation, Own extends Options> extends CommandText {
  readonly argument?: Partial<Argument>
  readonly remove: O
  readonly scope?: 'namespace' | 'cluster'
  /** Further options, and the query that they make. */
  readonly options?: Own
  query?(options: Values<Arguments, Own>['options']): object
  /** The question on a terminal. Default: `Delete pools a and b in svc-ios?` */
  question?(what: string, about: DeleteQuestion<Own>): string | Promise<string>
  /** Default: `Successfully deleted pool a`. */
  sentence?(name: string, namespace: string): string
}

interface DeleteQuestion<Own extends Options> {
  readonly names: readonly string[]
  readonly session: Session
  readonly options: Values<Arguments, Own>['options']
  readonly signal: AbortSignal
}

export function deleteCommand<const O extends Operation, const Own extends Options = Record<never, never>>(
  text: DeleteText<O, Own>,
): Command {
  const { remove, scope = 'namespace', options: own, question, sentence } = text
  const { one, many, listCommand, names: named } = wordsOf(remove)
  return defineCommand({
    ...(text.description !== undefined && { description: text.description }),
    arguments: {
      names: {
        value: 'NAME',
        description: `${many} to delete`,
        ...named,
        ...text.argument,
        required: true,
        repeatable: true,
      },
    },
    options: { ...(own ?? {}), ...yesOption, ...namespaced, ...printed },
    examples: text.examples,
    async run(context, { args: { names }, options }) {
      const session = await context.connect()
      const { client, namespace, sameTargetFlags } = session
      const { signal } = context
      const place = scope === 'cluster' ? 'from the cluster' : `in ${namespace}`
      // The cast is safe, because the parser makes the values of these options as well.
      const ownOptions = options as unknown as Values<Arguments, Own>['options']
      return deleteEach(context, {
        names,
        kind: one.toLowerCase(),
        nouns: [one, many],
        yes: options.yes,
        question: (what, distinct) =>
          question?.(what, { names: distinct, session, options: ownOptions, signal }) ?? `Delete ${what} ${place}?`,
        listCommand: `${listCommand}${scope === 'cluster' ? '' : sameTargetFlags}`,
        remove: (name) =>
          anyClient(client).call(remove, {
            params: paramsOf(remove, namespace, name),
            query: text.query?.(ownOptions),
            signal,
          }) as never,
        ...(sentence && { sentence: (name: string) => sentence(name, namespace) }),
      })
    },
  })
}

interface ChangeText<O extends Operation, A extends Arguments, Own extends Options> extends CommandText {
  /** The first argument names the record. */
  readonly arguments: A
  readonly options?: Own
  readonly change: O
  /** Returns the body. Called before the request; may ask for a password. */
  body?(values: Values<A, Own>, context: Context): unknown
  /** Returns the sentence that reports the change. */
  done(record: ResponseOf<O>, name: string, values: Values<A, Own>, namespace: string): string
}

/** Builds a command that sends one request about one record. */
export const changeCommand = <
  const O extends Operation,
  const A extends Arguments,
  const Own extends Options = Record<never, never>,
>({
  change,
  body,
  done,
  options = {} as Own,
  ...text
}: ChangeText<O, A, Own>): Command =>
  defineCommand<A, Own>({
    ...text,
    options: { ...options, ...namespaced, ...printed },
    async run(context, values) {
      const name = Object.values(values.args)[0] as string
      const sent = await body?.(values, context)
      const { client, namespace } = await context.connect()
      const params = paramsOf(change, namespace, name)
      const input = { params, ...(sent !== undefined && { body: sent }), signal: context.signal }
      const record = await anyClient(client).call(change, input)
      await context.done(done(record, name, values, namespace), record)
    },
  })

/** Returns the body of an update. Throws if it changes nothing. */
export function changed<T extends object>(body: T, hint: string): T {
  if (Object.keys(body).length === 0) throw new UsageError('Nothing to change', hint)
  return body
}
