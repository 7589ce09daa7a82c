// The declarations of `svc3/client`: inputs and outputs of every operation as plain interfaces, printed from the schemas of
// the operation table, so that users of the client need no schema library.
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { publishedOperations } from '../src/api/index.ts'
import { type Operation, paramNames } from '../src/api/operation.ts'
import { hasMethod, isStreamed } from '../src/client/npm/offered.ts'
import { root } from './sources.ts'

/** As much of JSON Schema as the table uses. */
interface Schema {
  readonly title?: string
  readonly description?: string
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
}

const preamble = `// Generated from the operation table: inputs and outputs of every operation as plain types.

import type { CallOptions, ChangeOptions } from './options.ts'
`

export function clientTypes(): string {
  const named = new Map<string, string>()
  const methods = publishedOperations.filter(hasMethod)
  const methodLines = methods.map((operation) => methodOf(operation, named))
  const watched = publishedOperations.filter(({ item }) => item).map((each) => itemLine(each, each.item, named))
  const made = publishedOperations.filter(({ madeOf }) => madeOf).map((each) => itemLine(each, each.madeOf, named))
  const streams = publishedOperations.filter(isStreamed).map((each) => `${each.id}: ${inputOf(each, named).text}`)
  const text = [
    preamble,
    ...[...named].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, interfaceText]) => interfaceText),
    block('A method for every operation, by its id in docs/openapi.json.', 'Methods', methodLines),
    block('Lists that can be watched, with what they list.', 'Watchable', watched),
    block('Every list, with what it lists.', 'Lists extends Watchable', made),
    block('Operations whose answers can be read as a stream, with their inputs.', 'Streams', streams),
  ].join('\n')
  return formatted(text)
}

const block = (about: string, name: string, lines: readonly string[]): string =>
  `/** ${about} */\nexport interface ${name} {\n${lines.join('\n')}\n}\n`

const itemLine = ({ id }: Operation, item: object | undefined, named: Map<string, string>): string =>
  `${id}: ${typeOf(item as Schema, named)}`

function methodOf(operation: Operation, named: Map<string, string>): string {
  const { id, summary, description, method, path: address, response } = operation
  const { text, isOptional } = inputOf(operation, named)
  const about = [summary, ...(description ? ['', description] : []), '', `\`${method} ${address}\``]
  const answer = operation.produces ? 'string' : typeOf(response as Schema, named)
  return `${comment(about.join('\n'))}${id}(input${isOptional ? '?' : ''}: ${text}): Promise<${answer}>`
}

/** A list is read by its method and watched by `watch`: what asks for a watch is no choice of callers. */
const ofWatches = new Set(['watch', 'resourceVersion'])

function inputOf(operation: Operation, named: Map<string, string>): { text: string; isOptional: boolean } {
  const { path: address, method, body, bodyIsOptional, item } = operation
  const query = operation.query as Schema | undefined
  const names = paramNames(address)
  const lines = names.map((name) => (isDefaulted(name, address) ? `${ofClient}namespace?: string` : `${name}: string`))
  if (query) {
    const shown = Object.entries(query.properties ?? {}).filter(([name]) => !item || !ofWatches.has(name))
    const isOfLists = item !== undefined || operation.madeOf !== undefined
    const inside = { ...query, properties: Object.fromEntries(shown), ...(isOfLists && { title: 'ListQuery' }) }
    lines.push(`query?: ${typeOf(inside, named)}`)
  }
  if (body) lines.push(`body${bodyIsOptional ? '?' : ''}: ${typeOf(body as Schema, named)}`)
  const options = method === 'POST' ? 'ChangeOptions' : 'CallOptions'
  const isOptional = names.every((name) => isDefaulted(name, address)) && (!body || bodyIsOptional === true)
  return { text: lines.length === 0 ? options : `${options} & {\n${lines.join('\n')}\n}`, isOptional }
}

/** What is done to a namespace itself names it. */
const isDefaulted = (name: string, address: string): boolean => name === 'namespace' && address.includes('{namespace}/')
const ofClient = comment('Default: that of the client')

/** The name of an interface, for schemas with a title; what stands inside is treated the same. */
function typeOf(schema: Schema, named: Map<string, string>): string {
  const { title } = schema
  if (title === undefined) return anonymous(schema, named)
  if (!named.has(title)) {
    named.set(title, '')
    named.set(title, `${comment(schema.description)}export interface ${title} ${anonymous(schema, named)}\n`)
  }
  return title
}

const simple: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
}

function anonymous(schema: Schema, named: Map<string, string>): string {
  const { type, enum: values, anyOf, items, properties, patternProperties } = schema
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ')
  if (anyOf) return anyOf.map((each) => typeOf(each, named)).join(' | ')
  if (items) return `Array<${typeOf(items, named)}>`
  if (properties) return objectOf(schema, named)
  if (patternProperties) {
    const inside = Object.values(patternProperties).map((each) => typeOf(each, named))
    return `Record<string, ${inside.join(' | ')}>`
  }
  if (Object.keys(schema).length === 0) return 'unknown'
  const found = simple[type ?? '']
  if (found === undefined) throw new Error(`scripts/client-types.ts knows no type for ${JSON.stringify(schema)}`)
  return found
}

function objectOf({ properties = {}, required = [] }: Schema, named: Map<string, string>): string {
  const fields = Object.entries(properties)
  if (fields.length === 0) return 'Record<string, never>'
  const lines = fields.map(
    ([name, each]) =>
      `${comment(each.title === undefined ? each.description : undefined)}${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(each, named)}`,
  )
  return `{\n${lines.join('\n')}\n}`
}

function comment(text: string | undefined): string {
  if (text === undefined) return ''
  const lines = text.replaceAll('*/', '* /').split('\n')
  return lines.length === 1
    ? `/** ${lines[0]} */\n`
    : `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join('\n')}\n */\n`
}

function formatted(text: string): string {
  const biome = path.join(root, 'node_modules/@biomejs/biome/bin/biome')
  const file = 'src/client/npm/operations.ts'
  const done = spawnSync(process.execPath, [biome, 'check', '--write', `--stdin-file-path=${file}`], {
    cwd: root,
    input: text,
    encoding: 'utf8',
  })
  if (done.status !== 0) throw new Error(`biome cannot format the types of the client: ${done.stderr}`)
  return done.stdout
}
