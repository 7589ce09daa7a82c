// Whatever odd values a caller sends, the answer has a status that the API document names for that operation. The rig
// compares every answer with the document (support/rigs/service.ts); here every field and parameter has its turn.
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { publishedOperations } from '../src/api/index.ts'
import type { Operation } from '../src/api/operation.ts'
import { startService, type TestService } from './support/rigs/service.ts'
import { addImage } from './support/stand-ins/node.ts'

let service: TestService
const undocumented: string[] = []
before(async () => {
  const limits = { requestsPerMinute: 1_000_000, anonymousPerMinute: 1_000_000 }
  service = await startService({ settings: { limits }, logLevel: 'silent' })
  await addImage(service, 'ventura', 'arm64')
  // The records of the examples, as far as one call makes them.
  for (const operation of callable.filter(({ method }) => method !== 'DELETE')) await call(operation)
})
after(() => service[Symbol.asyncDispose]())

/** Operations that answer a JSON request and end. */
const callable = publishedOperations.filter(
  ({ isUpload, isUpgrade, isStream, consumes, id }: Operation) =>
    !isUpload && !isUpgrade && !isStream && !consumes && id !== 'revokeTokens',
)

const odd: readonly unknown[] = ['', '!', 'é', 'A_b', '1h', '99999999', 'a/b:c', 'x'.repeat(5_000), -1, 1e9, true, null, ['!'], { a: '!' }] // biome-ignore format: a list

const namespace = 'svc-default'

async function call(
  operation: Operation,
  more: { params?: object; body?: object; query?: string } = {},
): Promise<void> {
  const params: Record<string, unknown> = { ...operation.example.params, ...more.params }
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(name === 'namespace' && !more.params ? namespace : String(params[name] ?? 'x')),
  )
  const body = more.body ?? operation.example.body
  const answer = service
    .call(operation.method, `${path}${more.query ?? ''}`, { ...(body !== undefined && { body }) })
    .catch((error: Error) => void undocumented.push(error.message))
  // Some wait for a VM that never runs; what they say in the end is not about the values.
  await Promise.race([answer, sleep(200)])
}

for (const operation of callable) {
  it(`${operation.id} answers odd values with a status that the API document names`, async () => {
    const { example, query } = operation
    const properties = (schema: unknown): string[] => Object.keys((schema as { properties?: object })?.properties ?? {})
    await Promise.all([
      ...properties(operation.body).flatMap((field) =>
        odd.map((value) => call(operation, { body: { ...(example.body as object), [field]: value } })),
      ),
      ...properties(query).flatMap((name) =>
        odd.map((value) => call(operation, { query: `?${name}=${encodeURIComponent(String(value))}` })),
      ),
      ...Object.keys(example.params ?? {}).flatMap((name) =>
        odd.slice(1).map((value) => call(operation, { params: { namespace, [name]: String(value) } })),
      ),
    ])
    assert.deepEqual([...new Set(undocumented.splice(0))], [])
  })
}
