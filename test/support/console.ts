// The console as a person uses it: a real Chromium on a real server. Logging in, looking for faults of accessibility,
// pictures for the README.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { type DevServer, root } from './dev-server.ts'
import { complaintsOf } from './login.ts'

/** Machines in CI are slow: nothing here is about being fast. */
const patienceMs = 60_000

export interface Opened extends AsyncDisposable {
  readonly context: BrowserContext
  readonly page: Page
  /** What pages wrote to the browser's own console: faults, and breaches of the policy. */
  readonly complaints: readonly string[]
}

/** A browser of its own, logged in with a token by the form. */
export async function openConsole(
  browser: Browser,
  server: Pick<DevServer, 'apiUrl'>,
  token: string | undefined,
  options: BrowserContextOptions = {},
): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  context.setDefaultTimeout(patienceMs)
  const page = await context.newPage()
  const complaints = complaintsOf(page)
  await page.goto(`${server.apiUrl}/console/`)
  if (token !== undefined) await logInWith(page, token)
  return { context, page, complaints, [Symbol.asyncDispose]: () => context.close() }
}

export async function logInWith(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
}

export const go = async (page: Page, server: Pick<DevServer, 'apiUrl'>, place: string): Promise<void> => {
  await page.goto(`${server.apiUrl}/console${place}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
}

let axe: string | undefined

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary?: string }[]
}

/** Fails with what axe finds: WCAG 2.1 AA and its best practices, or some of its rules. */
export async function assertAccessible(page: Page, where: string, rules?: readonly string[]): Promise<void> {
  axe ??= await fs.readFile(path.join(root, 'node_modules/axe-core/axe.min.js'), 'utf8')
  await page.evaluate(axe)
  const runOnly = rules ?? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']
  const run = `axe.run(document, ${JSON.stringify({ runOnly, resultTypes: ['violations'] })})`
  const { violations } = (await page.evaluate(run)) as { violations: readonly Violation[] }
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(' ')).join(', ')}`)
  assert.deepEqual(told, [], where)
}

/** Nothing is wider than the window. */
export async function assertFits(page: Page, where: string): Promise<void> {
  const beyond = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  assert.ok(Number(beyond) <= 0, `${where} is ${beyond} px wider than the window`)
}

/** One of the actions of the page or of a row. */
export async function choose(page: Page, menu: string, action: string): Promise<void> {
  await page.getByRole('button', { name: menu, exact: true }).click()
  await page.getByRole('menuitem', { name: action, exact: true }).click()
}
