// The curl command that does the same as an action. Secrets are placeholders.
import type { Operation } from '../../src/api/operation.ts'
import type { Input } from './commands.ts'

const secrets: ReadonlySet<string> = new Set(['password', 'userdata'])

const quote = (value: string): string => `'${value.replaceAll("'", `'\\''`)}'`

/** The path of an operation with its query. */
export function pathOf(operation: Operation, { params = {}, query = {} }: Input): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return search === '' ? path : `${path}?${search}`
}

export function curlLine(operation: Operation, input: Input, serviceUrl: string): string {
  const isChange = operation.method !== 'GET'
  const body = isChange && operation.body && input.body !== undefined ? shownBody(input.body) : undefined
  return [
    `curl ${operation.method === 'GET' ? '' : `-X ${operation.method} `}${quote(serviceUrl + pathOf(operation, input))}`,
    `-H "Authorization: Bearer $SVC3_TOKEN"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${quote(body)}`]),
    ...(operation.isDownload ? ['-OJ'] : []),
    ...(operation.isStream || input.query?.watch === true ? ['-N'] : []),
  ].join(' \\\n  ')
}

const shownBody = (body: unknown): string =>
  JSON.stringify(body, (key, value: unknown) => (secrets.has(key) && value ? `<${key}>` : value))
