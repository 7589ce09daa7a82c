// The option -A: lists the records of all namespaces that the caller can use, with a column for the namespace.
import { listNamespaces } from '../api/access/namespaces.ts'
import { ApiError } from '../api/errors.ts'
import type { Context, Options, Session } from './command.ts'
import type { OutputColumn } from './output/output.ts'

export const allNamespacesOption = {
  'all-namespaces': { type: 'boolean', short: 'A', description: 'All namespaces you can use' },
} as const satisfies Options

const maxConcurrent = 8

interface InNamespace {
  readonly namespace: string
}

interface Listed<T> {
  readonly items: readonly T[]
  readonly columns: readonly OutputColumn<T>[]
  /** For messages: `svc-ios`, or `any namespace`. */
  readonly where: string
  /** Undefined if all namespaces are listed. */
  readonly namespace: string | undefined
}

export async function listNamespaced<T extends InNamespace>(
  { signal }: Context,
  { client, namespace }: Session,
  isEverywhere: boolean,
  columns: readonly OutputColumn<NoInfer<T>>[],
  list: (namespace: string) => Promise<readonly T[]>,
): Promise<Listed<T>> {
  if (!isEverywhere) return { items: await list(namespace), columns, where: namespace, namespace }
  const names = (await client.listAll(listNamespaces, { signal })).map(({ name }) => name)
  const items: T[] = []
  for (let start = 0; start < names.length; start += maxConcurrent)
    for (const found of await Promise.all(
      names.slice(start, start + maxConcurrent).map((name) => list(name).catch(unlessDeleted)),
    ))
      items.push(...found)
  return {
    items,
    columns: [{ header: 'NAMESPACE', keep: 'whole', cell: (item) => item.namespace }, ...columns],
    where: 'any namespace',
    namespace: undefined,
  }
}

/** Ignores a namespace that was deleted after it was listed. */
function unlessDeleted(error: unknown): readonly never[] {
  if (error instanceof ApiError && error.reason === 'NotFound') return []
  throw error
}
