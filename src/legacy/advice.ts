// What a row advises: the requests and commands that replace a call, or why there are none.
import type { LegacyCall, LegacyRow, Replacement } from './row.ts'

export interface ExampleRequest {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

const documentation = 'docs/reference/orka-2.4.md'
export const documentationOf = ({ anchor }: Pick<LegacyRow, 'anchor'>): string => `${documentation}#${anchor}`

/** Replaces `{verb}` by the last part of the legacy path, such as `start`. */
function withVerb<T>(value: T, call: LegacyCall): T {
  if (typeof value === 'string') return value.replaceAll('{verb}', call.path.split('/').at(-1) ?? '') as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withVerb(each, call)])) as T
}

export const commandsFor = (row: LegacyRow, call: LegacyCall): string[] =>
  row.commands.map((line) => withVerb(line, call))

/** Returns an example request for each replacement. */
export function requestsFor(row: LegacyRow, call: LegacyCall, namespace = 'svc-default'): ExampleRequest[] {
  return row.operations.map((operation, index) => {
    const { example, method } = operation
    const body = withVerb(row.bodies[index] ?? example.body, call)
    const params = { ...example.params, namespace }
    return { method, path: fillPath(operation.path, params), ...(body !== undefined && method !== 'GET' && { body }) }
  })
}

export const fillPath = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replaceAll(/\{(\w+)\}/g, (whole, name) =>
    params[name] === undefined ? whole : encodeURIComponent(params[name].toWellFormed()),
  )

export const requestText = ({ method, path, body }: ExampleRequest): string =>
  body === undefined ? `${method} ${path}` : `${method} ${path} ${JSON.stringify(body)}`

/** Returns methods and paths, such as `POST /api/v1/namespaces/{namespace}/vms`, joined by "and". */
export const operationsText = (operations: readonly Replacement[]): string =>
  operations.map(({ method, path }) => `${method} ${path}`).join(' and ')

/** Why a call has no replacement, and what to do instead; undefined if it has one. */
export function reasonFor({ fate, advice, operations }: LegacyRow): string | undefined {
  if (fate === 'replaced') return undefined
  const what = fate === 'removed' ? 'removed' : 'no API endpoint'
  const use = operations.length === 0 ? '' : `; use ${operationsText(operations)}`
  return `${what}: ${advice}${use}`
}
