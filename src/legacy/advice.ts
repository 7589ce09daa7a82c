// A row in words: what replaces a call as a request and as a command, or why nothing does.
import type { LegacyCall, LegacyRow, Replacement } from './row.ts'

export interface ExampleRequest {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

const documentation = 'docs/reference/orka-2.4.md'
export const documentationOf = ({ anchor }: Pick<LegacyRow, 'anchor'>): string => `${documentation}#${anchor}`

/** `start`, for a call whose last part is what it does. */
const verbOf = ({ path }: LegacyCall): string => path.split('/').at(-1) ?? ''

/** `{verb}` stands for the last part of the legacy path. */
function withVerb<T>(value: T, call: LegacyCall): T {
  if (typeof value === 'string') return value.replaceAll('{verb}', verbOf(call)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withVerb(each, call)])) as T
}

export const commandsFor = (row: LegacyRow, call: LegacyCall): string[] =>
  row.commands.map((line) => withVerb(line, call))

/** One request for every operation that takes its place, with values that it could have. */
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

/** `POST /api/v1/namespaces/{namespace}/vms`, joined by "and". */
export const operationsText = (operations: readonly Replacement[]): string =>
  operations.map(({ method, path }) => `${method} ${path}`).join(' and ')

/** Why there is nothing for it, and what to do; undefined where there is a replacement. */
export function reasonFor({ fate, advice, operations }: LegacyRow): string | undefined {
  if (fate === 'replaced') return undefined
  const what = fate === 'removed' ? 'removed' : 'no API endpoint'
  const use =
    operations.length === 0
      ? ''
      : `; ${operationsText(operations)} ${operations.length === 1 ? 'is' : 'are'} there for it`
  return `${what}: ${advice}${use}`
}
