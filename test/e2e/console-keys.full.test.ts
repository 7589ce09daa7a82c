// The console by keyboard alone: the tab stops of every page with a visible focus, every dialog and menu with axe in
// both themes, and that Esc restores the focus.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { DevServer } from '../support/processes/dev-server.ts'
import { assertAccessible, focused, follow, go, openConsole, rulesOfColor, whenTrue } from '../support/rigs/console.ts'
import { launchBrowser } from '../support/rigs/login.ts'
import { pages, startWithEverything } from '../support/rigs/one-of-everything.ts'
import { eventually } from '../support/tools/eventually.ts'

let data: string
let server: DevServer
let browser: Browser

before(async () => {
  ;[{ data, server }, browser] = await Promise.all([startWithEverything(), launchBrowser()])
})
after(async () => {
  await browser.close()
  await server[Symbol.asyncDispose]()
  await fs.rm(data, { recursive: true, force: true })
})

const dialogCss = 'dialog:modal'

/** axe finds nothing in the open dialog or menu, in both themes. */
async function accessible(page: Page, what: string, within: string): Promise<void> {
  await page.emulateMedia({ colorScheme: 'dark' })
  await assertAccessible(page, `${what}, dark`, rulesOfColor, within)
  await page.emulateMedia({ colorScheme: 'light' })
  await assertAccessible(page, `${what}, light`, undefined, within)
}

/** Opens a page and waits until it has loaded. */
async function show(page: Page, place: string, title: string): Promise<void> {
  await follow(page, server, place)
  await whenTrue(
    page,
    `document.querySelector('h1')?.textContent === ${JSON.stringify(title)} &&
    !document.querySelector('.skeleton')`,
  )
}

/** Records every tab stop: its name, whether the focus is visible on it, and whether another element covers it. */
const recorder = `(() => {
  const look = (element) => [element, element.closest('label'), element.parentElement].map((each) => {
    if (!each) return ''
    const { outlineStyle, outlineWidth, boxShadow, backgroundColor, backgroundImage, borderColor } = getComputedStyle(each)
    return [outlineStyle === 'none' ? '' : outlineWidth, boxShadow, backgroundColor, backgroundImage, borderColor].join()
  }).join()
  const named = (element) =>
    [element.tagName, element.getAttribute('role'), element.ariaLabel || element.textContent.trim().slice(0, 40) || element.id].join(' ')
  const isCovered = (element) => {
    const { left, top, width, height } = (element.closest('label') ?? element).getBoundingClientRect()
    const above = document.elementFromPoint(left + Math.min(width / 2, 200), top + Math.min(height / 2, 20))
    return !above || !(element.contains(above) || above.contains(element) || above.contains(element.closest('label')))
  }
  let last
  window.stops = []
  addEventListener('focusin', ({ target }) => {
    // The previous element has lost the focus, so both looks are known.
    if (last) last.isSeen = last.look !== look(last.element)
    last = { element: target, look: look(target), name: named(target), isCovered: isCovered(target),
      isFirst: target.matches('.skip'), tabIndex: target.tabIndex, role: target.getAttribute('role') }
    window.stops.push(last)
  })
})()`

interface Stop {
  readonly name: string
  readonly role: string | null
  readonly isSeen?: boolean
  readonly isCovered: boolean
  readonly isFirst: boolean
  readonly tabIndex: number
}

const maxStops = 150

/** The tab stops from the top of a page to its end, or once around. */
async function stopsOf(page: Page, from: string): Promise<readonly Stop[]> {
  await page.evaluate(`scrollTo(0, 0); document.querySelector('${from}').focus(); window.stops.length = 0`)
  for (let pressed = 0; pressed < maxStops; pressed += 5) {
    for (let press = 0; press < 5; press++) await page.keyboard.press('Tab')
    const stops = (await page.evaluate('stops.map(({ element, ...stop }) => stop)')) as Stop[]
    const end = stops.findIndex(({ isFirst }, index) => isFirst && index > 0)
    if (end >= 0) return stops.slice(0, end)
  }
  throw new assert.AssertionError({ message: 'Tab does not return to the start' })
}

function judge(stops: readonly Stop[], place: string): void {
  assert.ok(stops.length > 0, place)
  const names = (some: readonly Stop[]): readonly string[] => some.map(({ name }) => name)
  assert.deepEqual(names(stops.filter(({ isSeen }) => isSeen === false)), [], `${place}: these show no focus`)
  assert.deepEqual(names(stops.filter(({ isCovered }) => isCovered)), [], `${place}: these are covered`)
  assert.deepEqual(names(stops.filter(({ tabIndex }) => tabIndex > 0)), [], `${place}: these have a positive tabindex`)
  const edges = stops.filter(({ role }) => role === 'separator')
  assert.ok(edges.length <= 1, `${place}: ${names(edges).join(', ')}`)
}

/** Buttons that open no dialog. */
const opensNothing = /^(Download|Copy|Add (label|rule)|Clear filters|1 hour|24 hours|7 days)/

/**
 * Titles of inspected dialogs, and buttons pressed by kind of page and label, because rows and pages of an object share
 * dialogs.
 */
const seen = new Set<string>()
const taken = new Set<string>()
const onEveryPage = new Set(['Columns', 'Show as command'])
const isTaken = (place: string, label: string): boolean => {
  const key = `${onEveryPage.has(label) ? '' : place.split('/')[1]} ${label}`
  if (taken.has(key)) return true
  taken.add(key)
  return false
}

/** The dialog is accessible, keeps the focus, and restores it. */
async function inspect(page: Page, place: string, opener: string): Promise<void> {
  const title = String(await page.evaluate(`document.querySelector('${dialogCss} h2').textContent`))
  const what = `${place}: ${title}`
  if (!seen.has(title)) {
    seen.add(title)
    await accessible(page, what, dialogCss)
    // axe checks the name only of explicit roles.
    assert.equal(await page.getByRole('dialog', { name: title, exact: true }).count(), 1, `${what} has no name`)
    for (let press = 0; press < 3; press++) {
      await page.keyboard.press('Tab')
      const isInside = `document.activeElement === document.body || document.activeElement.closest('dialog') !== null`
      assert.ok(await page.evaluate(isInside), `${what}: the focus has left it`)
    }
  }
  await page.keyboard.press('Escape')
  // The first Esc may have closed the list of a field.
  if (await page.evaluate(`document.querySelector('${dialogCss}') !== null`)) await page.keyboard.press('Escape')
  await whenTrue(page, `!document.querySelector('${dialogCss}')`)
  if (!page.url().endsWith(place)) return
  await whenTrue(page, `document.activeElement === ${opener}`, 5_000).catch(async () => {
    const now = await page.evaluate('document.activeElement.outerHTML.slice(0, 200)')
    assert.fail(`${what}: the focus went to ${now}`)
  })
}

const opened = `(document.querySelector('${dialogCss}') ? 'dialog' : document.querySelector('[popover]:popover-open') ? 'menu' : '')`

async function openAll(page: Page, place: string, title: string): Promise<void> {
  // One row menu is enough: all rows have the same.
  const names =
    (await page.evaluate(`[...new Set([...document.querySelectorAll('main button:not(th button, [role=combobox], [aria-disabled=true], :disabled)')]
    .map((button) => button.ariaLabel ?? button.textContent))]`)) as readonly string[]
  const rows = names.filter((name) => name.startsWith('Actions for '))
  for (const name of names) {
    if (opensNothing.test(name) || (rows.includes(name) && name !== rows[0])) continue
    if (!rows.includes(name) && isTaken(place, name)) continue
    const button = `[...document.querySelectorAll('main button')].find((each) => (each.ariaLabel ?? each.textContent) === ${JSON.stringify(name)})`
    const press = async (): Promise<unknown> => {
      await page.evaluate(`${button}.focus()`)
      await page.keyboard.press('Enter')
      // A dialog is drawn within two frames.
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
      return page.evaluate(opened)
    }
    const what = await press()
    if (what === 'dialog') await inspect(page, place, button)
    if (what !== 'menu') {
      if (!page.url().endsWith(place)) await show(page, place, title)
      continue
    }
    const items = (await page.evaluate(`[...document.querySelectorAll('[popover] [role=menuitem]')]
      .map((item) => item.ariaDisabled === 'true' ? '' : item.textContent)`)) as readonly string[]
    if (!isTaken('/', 'menu')) await accessible(page, `${place}: the menu ${name}`, '[popover]')
    await page.keyboard.press('Escape')
    await whenTrue(page, `document.activeElement === ${button}`)
    for (const [index, item] of items.entries()) {
      if (item === '' || opensNothing.test(item) || isTaken(place, item)) continue
      await press()
      for (let down = 0; down < index; down++) await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
      if ((await page.evaluate(opened)) === 'dialog') await inspect(page, place, button)
      if (!page.url().endsWith(place)) await show(page, place, title)
    }
  }
}

describe('the console by keyboard', () => {
  it('the console by keyboard has visible stops on every page, and dialogs that restore the focus', {
    timeout: 590_000,
  }, async (t) => {
    await using shown = await openConsole(browser, server, server.token)
    const { page } = shown
    await page.evaluate(recorder)
    judge(await stopsOf(page, 'body'), 'the whole of the overview')
    // Pages that are a dialog are inspected where a button opens them.
    for (const [place, title] of pages.filter(([each]) => !each.includes('?'))) {
      await show(page, place, title)
      judge(await stopsOf(page, 'main'), place)
      await openAll(page, place, title)
    }
    t.diagnostic(`${seen.size} dialogs`)
    assert.ok(seen.size >= 50, [...seen].join(', '))
  })

  it('the console is used by keyboard alone', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const heading = (name: string) => page.getByRole('heading', { name, level: 1 })
    /** A slow machine may miss the time between the two keys, so they are repeated. */
    await eventually(async () => {
      await page.keyboard.press('g')
      await page.keyboard.press('v')
      await heading('VMs').waitFor({ timeout: 2_000 })
    })
    await page.getByRole('searchbox').waitFor()
    await page.keyboard.press('/')
    await focused(page.getByRole('searchbox'))
    await page.keyboard.type('web')
    await page.getByText(/^1 of \d+ VMs$/).waitFor()
    const link = page.getByRole('link', { name: 'web', exact: true })
    await link.focus()
    await focused(link)
    await page.keyboard.press('Enter')
    await heading('web').waitFor()
    const actions = page.getByRole('button', { name: 'Actions', exact: true })
    await actions.focus()
    await focused(actions)
    await page.keyboard.press('Enter')
    await focused(page.getByRole('menuitem', { name: 'Start', exact: true }))
    await page.keyboard.press('ArrowDown')
    await focused(page.getByRole('menuitem', { name: 'Stop', exact: true }))
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    // The focus returns to the button.
    await focused(actions)
  })

  it('fields and menus of the console follow the ARIA practices for keys and pass axe', {
    timeout: 150_000,
  }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page, complaints } = opened
    const press = async (...keys: readonly string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key)
    }
    const at = (name: string) => page.locator('[role=option][aria-selected=true], [data-at]').filter({ hasText: name })
    await go(page, server, '/vms?deploy')
    await page.getByText('More options').click()
    // A select.
    const dialog = page.getByRole('dialog', { name: 'Deploy VM' })
    const node = dialog.getByRole('combobox', { name: 'Node', exact: true })
    await node.focus()
    await press('ArrowDown')
    await page.getByRole('listbox').waitFor()
    await accessible(page, 'an open select', '[popover]')
    await press('End')
    await at('sim-arm64-2').waitFor()
    await press('Home')
    await press('Escape')
    await page.getByRole('listbox').waitFor({ state: 'detached' })
    await focused(node)
    assert.equal(await node.textContent(), 'Any')
    await press('Enter')
    await page.keyboard.type('sim-amd64-2')
    await at('sim-amd64-2').waitFor()
    await press('Enter')
    await eventually(async () => assert.equal(await node.textContent(), 'sim-amd64-2'))
    // A combobox.
    const image = dialog.getByRole('combobox', { name: 'Image', exact: true })
    await image.focus()
    await page.keyboard.type('tiny')
    await page.getByRole('listbox').waitFor()
    await accessible(page, 'an open field with offers', '[popover]')
    assert.equal(await page.getByRole('option').count(), 2)
    await press('ArrowDown', 'ArrowDown')
    await at('tiny-arm64').waitFor()
    await press('Enter')
    await eventually(async () => assert.equal(await image.inputValue(), 'tiny-arm64'))
    // A menu.
    await go(page, server, '/vms/svc-default/web')
    const actions = page.getByRole('button', { name: 'Actions', exact: true })
    const item = (name: string) => page.getByRole('menuitem', { name, exact: true })
    await actions.focus()
    await press('ArrowUp')
    await focused(item('Delete'))
    await accessible(page, 'an open menu', '[popover]')
    await press('ArrowDown')
    await focused(item('Start'))
    await press('End')
    await focused(item('Delete'))
    await press('Home', 'S')
    await focused(item('Stop'))
    await press('Escape')
    await focused(actions)
    await press('ArrowDown')
    await focused(item('Start'))
    await press('Tab')
    await page.getByRole('menu').waitFor({ state: 'detached' })
    // There is no estimate for an image whose name is typed in part.
    assert.deepEqual(
      complaints.filter((each) => !each.includes('404')),
      [],
    )
  })
})
