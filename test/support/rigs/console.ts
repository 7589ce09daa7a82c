// The console in a real Chromium on a real server: login, accessibility checks, pictures for the README.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { type DevServer, root } from '../processes/dev-server.ts'
import { eventually } from '../tools/eventually.ts'
import { complaintsOf } from './login.ts'

/** For slow machines; speed is not tested here. */
const timeoutMs = 60_000

export interface Opened extends AsyncDisposable {
  readonly context: BrowserContext
  readonly page: Page
  /** Messages in the browser's console: errors and violations of the policy. */
  readonly complaints: readonly string[]
}

/** Sessions by token: later windows reuse the cookie. */
const sessions = new WeakMap<Browser, Map<string, Awaited<ReturnType<BrowserContext['storageState']>>>>()

/** Chromium does not report violations on every page that it left. */
const tellViolations = `addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile))`

/** A separate browser context, logged in by the form or with an earlier cookie. */
export async function openConsole(
  browser: Browser,
  server: Pick<DevServer, 'apiUrl'>,
  token: string | undefined,
  options: BrowserContextOptions = {},
): Promise<Opened> {
  const known = sessions.get(browser) ?? new Map()
  sessions.set(browser, known)
  const key = `${server.apiUrl} ${token}`
  const storageState = token === undefined ? undefined : known.get(key)
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    ...(storageState && { storageState }),
    ...options,
  })
  context.setDefaultTimeout(timeoutMs)
  await context.addInitScript(tellViolations)
  const page = await context.newPage()
  const complaints = complaintsOf(page)
  await page.goto(`${server.apiUrl}/console/`)
  if (storageState) await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  else if (token !== undefined) {
    await logInWith(page, token)
    known.set(key, await context.storageState())
  }
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

/** Navigates as a link does, without loading everything again. */
export const follow = async (page: Page, server: Pick<DevServer, 'apiUrl'>, place: string): Promise<void> => {
  const url = `${server.apiUrl}/console${place}`
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(url)})`)
}

/** Evaluates the expression in every frame: a locator polls at growing intervals. */
export async function whenTrue(page: Page, expression: string, withinMs = timeoutMs): Promise<void> {
  const isTrue = await page.evaluate(`new Promise((done) => {
    const endMs = performance.now() + ${withinMs}
    const look = () => (${expression}) ? done(true) : performance.now() > endMs ? done(false) : requestAnimationFrame(look)
    look()
  })`)
  assert.ok(isTrue, `${page.url()}: ${expression}`)
}

/** Resolves when the element has the keyboard focus. */
export const focused = (locator: Locator): Promise<void> =>
  eventually(async () => {
    const isThere = await locator.evaluate((element) =>
      (element as unknown as { matches(css: string): boolean }).matches(':focus'),
    )
    assert.ok(isThere, 'it does not have the focus')
  })

let axe: string | undefined

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary?: string }[]
}

/** The rules that another theme may break. */
export const rulesOfColor: readonly string[] = ['color-contrast', 'link-in-text-block']

/** Fails with axe's findings: WCAG 2.1 AA and best practices, or some rules, on the page or a part of it. */
export async function assertAccessible(
  page: Page,
  where: string,
  rules?: readonly string[],
  within = ':root',
): Promise<void> {
  axe ??= await fs.readFile(path.join(root, 'node_modules/axe-core/axe.min.js'), 'utf8')
  if (await page.evaluate('typeof axe === "undefined"')) await page.evaluate(axe)
  const runOnly = rules ?? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']
  const run = `axe.run(${JSON.stringify(within)}, ${JSON.stringify({ runOnly, resultTypes: ['violations'] })})`
  const { violations } = (await page.evaluate(run)) as { violations: readonly Violation[] }
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(' ')).join(', ')}`)
  assert.deepEqual(told, [], where)
}

/** Nothing is wider than the window. */
export async function assertFits(page: Page, where: string): Promise<void> {
  const beyond = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  assert.ok(Number(beyond) <= 0, `${where} is ${beyond} px wider than the window`)
}

/** No name is truncated: of the page, in the navigation, or of a row. Columns get their widths some frames after a resize. */
export const assertWhole = (page: Page, where: string): Promise<void> =>
  eventually(async () => {
    const cut = await page.evaluate(`[...document.querySelectorAll('h1, .nav a, td:has(a.strong)')]
      .filter((element) => element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== 'visible')
      .map((element) => element.textContent)`)
    assert.deepEqual(cut, [], where)
  }, 10_000)

/** Chooses an action of the page or a row once it is enabled. */
export async function choose(page: Page, menu: string, action: string): Promise<void> {
  await page.getByRole('button', { name: menu, exact: true }).click()
  await page.getByRole('menuitem', { name: action, exact: true, disabled: false }).click()
}

/** The reason why an action is disabled, beside it and linked to it for screen readers. */
export const reasonOf = async (item: Locator): Promise<string> =>
  item
    .page()
    .locator(`[id="${await item.getAttribute('aria-describedby')}"]`)
    .innerText()

/** Chooses an option of a field. */
export async function pick(within: Page | Locator, field: string, choice: string): Promise<void> {
  await within.getByLabel(field, { exact: true }).click()
  await within.getByRole('option', { name: choice, exact: true }).click()
}

/** The content of a file of that size, computed here and in the page, so that nothing has to be sent. */
export const patternOf = (size: number): Buffer => Buffer.from(Uint8Array.from({ length: size }, byteAt))
/** With the signature of a disc at its place. */
const byteAt = (_: unknown, index: number): number =>
  index > 0x8000 && index < 0x8006
    ? 'CD001'.charCodeAt(index - 0x8001)
    : (index * 31 + (index >> 8) + (index >> 16)) & 255

/** As from a file manager. */
export async function dropFile(page: Page, name: string, size: number): Promise<void> {
  const transfer = await page.evaluateHandle(
    `(() => {
      const bytes = Uint8Array.from({ length: ${size} }, ${byteAt.toString()})
      const transfer = new DataTransfer()
      transfer.items.add(new File([bytes], ${JSON.stringify(name)}, { lastModified: 1 }))
      return transfer
    })()`,
  )
  await page.locator('.drop').dispatchEvent('drop', { dataTransfer: transfer })
}
