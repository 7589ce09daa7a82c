// Every entry of a table has its file, and every file its entry.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { allOperations, operations } from '../../src/api/index.ts'
import { paramNames } from '../../src/api/operation.ts'
import { vmCommands } from '../../src/api/vms/vms.ts'

const src = path.resolve(import.meta.dirname, '../../src')
const nouns = [...new Set(allOperations.map(({ noun }) => noun))]
const filesIn = (folder: string): string[] =>
  fs
    .readdirSync(path.join(src, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .sort()

const fieldsOf = (schema: unknown): string[] => Object.keys((schema as { properties?: object })?.properties ?? {})

describe('the table of operations', () => {
  it('the table of operations has a file in api/ and one in server/routes/ for every noun, by the same name', () => {
    const support = ['architecture', 'built-in-images', 'errors', 'guest-reach', 'image-operations', 'index', 'json', 'node-report', 'nouns', 'operation', 'records', 'revision', 'usage-csv', 'vm-deployment', 'vm-shape'] // biome-ignore format: a list
    const ofNouns = (folder: string): string[] =>
      filesIn(folder).filter((file) => !support.includes(path.basename(file, '.ts')))
    assert.deepEqual(ofNouns('api'), ofNouns('server/routes'))
    assert.deepEqual(
      ofNouns('api')
        .map((file) => path.basename(file, '.ts'))
        .sort(),
      [...nouns].sort(),
    )
  })

  it('the table of operations gathers every operation that a file of api/ exports', async () => {
    const exported: string[] = []
    for (const file of filesIn('api').filter((name) => nouns.includes(path.basename(name, '.ts')))) {
      const module: Record<string, unknown> = await import(path.join(src, 'api', file))
      for (const [name, value] of Object.entries(module))
        if (typeof value === 'object' && value && 'allow' in value) exported.push(name)
    }
    assert.deepEqual(Object.keys(operations).sort(), exported.sort())
  })

  it('the table of operations has ids that are the names of the values, and no route twice', () => {
    for (const [name, operation] of Object.entries(operations)) assert.equal(operation.id, name)
    const routes = allOperations.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`)
    assert.equal(new Set(routes).size, routes.length)
  })

  it('the table of operations says of every change in a namespace what it changes, so that there is an event', () => {
    for (const { id, method, path, involves, example } of allOperations) {
      if (method === 'GET' || !path.includes('/namespaces')) continue
      const [part = '', name = ''] = involves?.split('.') ?? []
      const request: Record<string, Record<string, unknown> | undefined> = {
        params: example.params,
        body: example.body as Record<string, unknown>,
        answer: example.response as Record<string, unknown>,
      }
      assert.ok(request[part]?.[name], `${id} involves ${involves}`)
    }
  })

  it('the table of operations has a phrase in the past tense for every change, and a value for all that it names', () => {
    for (const { id, path, involves, past, body, response, example } of allOperations) {
      assert.equal(past === undefined, involves === undefined, `${id} involves ${involves}, past: ${past}`)
      const phrases = typeof past === 'string' ? [past] : Object.values(past ?? {})
      const known = ['name', 'kind', ...paramNames(path), ...[body, response].flatMap((schema) => fieldsOf(schema))]
      for (const phrase of phrases) {
        assert.match(phrase, /^([a-z]+ed|set) /, `${id}: "${phrase}"`)
        for (const field of paramNames(phrase)) assert.ok(known.includes(field), `${id} tells an unknown ${field}`)
      }
      const commands = (example.body as { command?: string } | undefined)?.command
      if (typeof past === 'object') assert.ok(past[commands ?? ''], `${id} has no phrase for ${commands}`)
    }
    assert.deepEqual(Object.keys(operations.execVm.past), [...vmCommands])
  })

  it('the table of operations has an example for every parameter and every body', () => {
    for (const { id, path, body, example } of allOperations) {
      for (const name of paramNames(path)) assert.ok(example.params?.[name], `${id}: no example for {${name}}`)
      if (body) assert.ok(example.body !== undefined, `${id}: no example of a body`)
    }
  })
})
