// A page whose service answers with markup in every text that the schemas leave free, also in those that no user can set today.
import type { Page } from 'playwright-core'
import { allOperations } from '../../../src/api/index.ts'

/** As text it is harmless. As an element it sets `window.hit`. */
export const markup = '<img src=x onerror="window.hit=1"><b>bold</b>'

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly [key: string]: unknown
}

/** What the page navigates, sorts and decides by. Markup in it would be another page. */
const structure = ['name', 'namespace', 'uid', 'id', 'kind', 'node', 'type', 'resourceVersion', 'continue', 'role']
const limited = ['enum', 'const', 'pattern', 'format']

function limitedNames(schema: unknown, name = ''): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  if (Array.isArray(schema)) return schema.flatMap((each) => limitedNames(each, name))
  const { properties = {}, ...others } = schema as Schema
  const own = limited.some((word) => word in others) ? [name] : []
  return [
    ...own,
    ...Object.entries(properties).flatMap(([each, of]) => limitedNames(of, each)),
    ...Object.values(others).flatMap((each) => limitedNames(each, name)),
  ]
}

const kept = new Set([
  ...structure,
  ...allOperations.flatMap(({ response, item, madeOf }) => limitedNames([response, item, madeOf])),
])

function withMarkup(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return kept.has(name) ? value : `${value}${markup}`
  if (Array.isArray(value)) return value.map((each) => withMarkup(each, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withMarkup(each, key)]))
}

export async function serveMarkup(page: Page): Promise<void> {
  await page.route('**/api/v1/**', async (route) => {
    const response = await route.fetch()
    const isJson = response.headers()['content-type']?.includes('json')
    await route.fulfill({ response, ...(isJson && { json: withMarkup(await response.json()) }) })
  })
  await page.routeWebSocket(/\/api\/v1\/watch$/, (socket) => {
    const server = socket.connectToServer()
    server.onMessage((message) => socket.send(JSON.stringify(withMarkup(JSON.parse(String(message))))))
  })
}
