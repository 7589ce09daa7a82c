// Every page of the console in a real browser, on a real server with simulated hosts: accessibility in both themes and
// on a phone, permissions, restarts of the server, several tabs, security, and the size of the first page.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { operations } from '../../src/api/index.ts'
import { type DevServer, root, startDev, svc3 } from '../support/processes/dev-server.ts'
import {
  assertAccessible,
  assertFits,
  assertWhole,
  choose,
  dropFile,
  follow,
  go,
  logInWith,
  openConsole,
  patternOf,
  pick,
  reasonOf,
  rulesOfColor,
  whenTrue,
} from '../support/rigs/console.ts'
import { fillLogin, isPictured, launchBrowser, screenshot } from '../support/rigs/login.ts'
import { manyVm, serveManyVms } from '../support/rigs/many-vms.ts'
import { options, pages, startWithEverything } from '../support/rigs/one-of-everything.ts'
import { startService } from '../support/rigs/service.ts'
import { startNode } from '../support/stand-ins/node.ts'
import { startTcpProxy } from '../support/stand-ins/tcp-proxy.ts'
import { eventually } from '../support/tools/eventually.ts'
import { markup, serveMarkup } from '../support/tools/markup-everywhere.ts'
import { startPrefixProxy } from './prefix-proxy.ts'

const ns = '/api/v1/namespaces/svc-default'
let data: string
let server: DevServer
let browser: Browser

const call = async (method: string, url: string, body?: unknown): Promise<void> => {
  const answer = await server.call(method, url, body)
  assert.ok(answer.status < 300, `${method} ${url}: ${JSON.stringify(answer.body)}`)
}

before(async () => {
  ;[{ data, server }, browser] = await Promise.all([startWithEverything(), launchBrowser()])
})
after(async () => {
  await browser.close()
  await server[Symbol.asyncDispose]()
  await fs.rm(data, { recursive: true, force: true })
})

const laptop = { width: 1440, height: 900 }
const phone = { width: 390, height: 844 }
const others = [
  { width: 1024, height: 768 },
  { width: 1920, height: 1080 },
]
const large = { width: 3840, height: 2160 }
/** One page of each kind, because large screens are slow to draw. */
const largeToo = new Set<string>(['/', '/vms', '/vms/svc-default/web', '/vms?deploy', '/images/copied', '/charts'])

async function lookAt(page: Page, place: string, title: string): Promise<void> {
  const at = async (size: { width: number; height: number }): Promise<void> => {
    await page.setViewportSize(size)
    const where = `${place}, ${size.width} px wide`
    await assertFits(page, where)
    await assertWhole(page, where)
    for (const colorScheme of isPictured ? (['dark', 'light'] as const) : []) {
      await page.emulateMedia({ colorScheme })
      await screenshot(page, `console${place.replaceAll(/\W+/g, '-')}-${size.width}-${colorScheme}`)
    }
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(laptop)
  await follow(page, server, place)
  await whenTrue(page, `document.querySelector('h1')?.textContent === ${JSON.stringify(title)}`)
  if (place.includes('?')) await page.getByRole('dialog').waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  if (place === '/charts') await page.locator('.chart canvas').first().waitFor()
  await assertAccessible(page, `${place}, light`)
  await page.emulateMedia({ colorScheme: 'dark' })
  await assertAccessible(page, `${place}, dark`, rulesOfColor)
  for (const size of [laptop, ...others, ...(largeToo.has(place) ? [large] : []), phone]) await at(size)
  await assertAccessible(page, `${place} on a phone`, ['region', 'scrollable-region-focusable', 'target-size'])
}

/** A day of values for every chart, because a new service has none. */
function chartsOfADay() {
  const { stepSeconds, series } = operations.getCharts.example.response
  const wave = (_: unknown, minute: number): number | null => (minute < 120 ? null : 5 + 4 * Math.sin(minute / 90))
  return { stepSeconds, series: series.map((each) => ({ ...each, values: Array.from({ length: 1_440 }, wave) })) }
}

/** Makes the page check its session, and delays the response until the returned function is called. */
async function holdSessionLook(page: Page): Promise<() => Promise<void>> {
  const asked = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const looks = '**/console/session'
  await page.route(looks, async (route) => {
    if (route.request().method() !== 'GET') return await route.continue()
    const response = await route.fetch()
    asked.resolve()
    await goOn.promise
    await route.fulfill({ response })
  })
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
  await asked.promise
  return async () => {
    const answered = page.waitForResponse(looks)
    goOn.resolve()
    await (await answered).finished()
    await page.unroute(looks)
    // A dialog would be drawn within two frames.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  }
}

describe('the console', () => {
  it('the console passes axe on every page, light, dark and on a phone', { timeout: 590_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page, complaints } = opened
    await page.route('**/api/v1/charts?*', (route) => route.fulfill({ json: chartsOfADay() }))
    for (const [place, title] of pages) await lookAt(page, place, title)
    assert.deepEqual(complaints, [])
  })

  it('the console does not store a token, and explains why one is refused', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, undefined)
    const { page, context } = opened
    await page.getByLabel('Token').waitFor()
    await assertAccessible(page, 'login')
    await page.getByLabel('Token').fill('not-a-token')
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.getByRole('alert').waitFor()
    // A changed fragment alone does not load the page.
    await page.goto('about:blank')
    await page.goto(`${server.apiUrl}/console/#ticket=spent`)
    await page.getByText('this link was used before or has expired. Run svc3 console for a new link.').waitFor()
    await logInWith(page, server.token)
    const kept = String(
      await page.evaluate(
        'JSON.stringify([localStorage, sessionStorage, document.cookie, location.href, history.state])',
      ),
    )
    assert.ok(!kept.includes(server.token))
    assert.ok(!kept.includes('svc3_console'), 'scripts can read the cookie')
    const [cookie] = await context.cookies()
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite], [true, 'Strict'])
  })

  it('the console logs in through the identity provider, and logs out in every tab', { timeout: 150_000 }, async () => {
    const words = ['server', 'users', 'add', 'ada@example.com', '--password-stdin', '--data', data]
    assert.equal((await svc3(words, { input: 'canary-password-1\n' })).code, 0)
    await using opened = await openConsole(browser, server, undefined)
    const { page, context } = opened
    await page.goto(`${server.apiUrl}/console/nodes`)
    await page.getByRole('link', { name: 'Log in with email and password' }).click()
    await fillLogin(page, 'ada@example.com', 'canary-password-1')
    await page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
    const other = await context.newPage()
    await go(other, server, '/vms')
    await choose(page, 'Account', 'Log out everywhere')
    await page.getByLabel('Token').waitFor()
    await other.getByLabel('Token').waitFor()
  })

  it('the console shows markup as text on every page, whichever text of the service has it', {
    timeout: 590_000,
  }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page, complaints } = opened
    await serveMarkup(page)
    let shown = 0
    for (const [place] of pages) {
      await go(page, server, place)
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      if ((await page.locator('body').innerText()).includes(markup)) shown++
      assert.equal(await page.locator('img[src="x"], a[href^="javascript:" i]').count(), 0, place)
      assert.equal(await page.evaluate('window.hit'), undefined, place)
    }
    assert.ok(shown > pages.length / 2, `${shown} pages show it`)
    assert.deepEqual(complaints, [])
  })

  it('the console shows changes in two tabs without a reload', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page, context } = opened
    const other = await context.newPage()
    await Promise.all([go(page, server, '/vms'), go(other, server, '/')])
    await call('POST', `${ns}/vms`, { name: 'fresh', image: 'tiny-amd64', cpu: 1 })
    const row = page.getByRole('row', { name: /(^|\/)fresh/ })
    await row.getByText('Running', { exact: true }).waitFor()
    await other.getByRole('list', { name: 'Events' }).getByText('fresh').first().waitFor()
    await call('POST', `${ns}/vms/fresh/exec`, { command: 'stop' })
    await row.getByText('Stopped', { exact: true }).waitFor()
    await call('DELETE', `${ns}/vms/fresh`)
    await row.waitFor({ state: 'detached' })
  })

  it('the console shows why an action is unavailable, and the command for it', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/vms/svc-default/web')
    await page.getByRole('button', { name: 'Actions', exact: true }).click()
    const start = page.getByRole('menuitem', { name: 'Start', exact: true })
    assert.equal(await start.getAttribute('aria-disabled'), 'true')
    assert.match(await reasonOf(start), /web is already running/)
    await page.getByRole('menuitem', { name: 'Stop', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Show as command' }).click()
    await dialog.getByText('svc3 vm stop web').waitFor()
    await dialog.getByRole('button', { name: 'Show as request' }).click()
    await dialog.getByText('-d \'{"command":"stop"}\'').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await go(page, server, '/vms/svc-default/huge')
    await page.getByText('Why this VM is pending').waitFor()
    await page
      .getByText(/^No (\w+ )?node has 12 cores free/)
      .first()
      .waitFor()
  })

  it('the console protects images for administrators, and names no VM of another namespace', {
    timeout: 150_000,
  }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/images/copied')
    await choose(page, 'Actions', 'Protect')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Show as command' }).click()
    await dialog.getByText('svc3 image protect copied').waitFor()
    await dialog.getByRole('button', { name: 'Protect', exact: true }).click()
    await page.getByText('Protected', { exact: true }).waitFor()
    assert.equal((await server.call('GET', `${ns}/images/copied`)).body.protected, true)
    await call('POST', `${ns}/vms`, { name: 'of-protected', image: 'copied', cpu: 1 })
    await go(page, server, '/vms/svc-default/of-protected')
    await choose(page, 'Actions', 'Commit to image')
    await dialog.getByText('Image copied is protected: only administrators can commit to it').waitFor()
    await screenshot(page, 'console-commit')

    const away = '/api/v1/namespaces/svc-away'
    await call('POST', '/api/v1/namespaces', { name: 'svc-away' })
    await call('POST', `${away}/serviceaccounts/stranger`, {})
    const { body } = await server.call('POST', `${away}/serviceaccounts/stranger/token`, {})
    await using theirs = await openConsole(browser, server, String(body.token))
    await go(theirs.page, server, '/images/tiny-amd64')
    await theirs.page.locator('li', { hasText: /VMs? in (another namespace|other namespaces)/ }).waitFor()
    assert.ok(!(await theirs.page.locator('main').innerText()).includes('svc-default/'))
    await theirs.page.getByRole('button', { name: 'Actions', exact: true }).click()
    const deletion = theirs.page.getByRole('menuitem', { name: /^Delete/ })
    assert.match(await reasonOf(deletion), /Protected: only administrators can change or delete it/)
    assert.equal(await theirs.page.getByRole('menuitem', { name: /rotect/ }).count(), 0)
    await screenshot(theirs.page, 'console-images-stranger-light')
  })

  it('the console requires the name before it deletes', { timeout: 150_000 }, async () => {
    await call('POST', `${ns}/vms`, { name: 'doomed', image: 'tiny-amd64', cpu: 1 })
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/vms/svc-default/doomed')
    await choose(page, 'Actions', 'Delete')
    const dialog = page.getByRole('dialog')
    const button = dialog.getByRole('button', { name: 'Delete', exact: true })
    // A forced click sends nothing before the name is typed.
    const deletions: string[] = []
    page.on('request', (request) => request.method() === 'DELETE' && deletions.push(request.url()))
    await button.click({ force: true })
    await dialog.getByLabel('Type doomed to confirm').fill('doomed')
    await button.click()
    await page.getByRole('heading', { name: 'VMs', level: 1 }).waitFor()
    assert.equal((await server.call('GET', `${ns}/vms/doomed`)).status, 404)
    assert.equal(deletions.length, 1)
  })

  it('the console changes a configuration and keeps fields that its form does not show', {
    timeout: 150_000,
  }, async () => {
    const config = { name: 'lab', image: 'tiny-arm64', cpu: 2, memory: 1, tag: 'lab', scheduler: 'most-allocated' }
    await call('POST', `${ns}/vmconfigs`, { ...config, displayWidth: 1_280, vncConsole: false })
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const dialog = page.getByRole('dialog', { name: 'Change configuration lab' })
    await go(page, server, '/configurations')
    await choose(page, 'Actions for lab', 'Change')
    await dialog.getByLabel('Cores').fill('3')
    await dialog.getByLabel('Memory in GiB').fill('')
    await dialog.getByLabel('Tag', { exact: true }).fill('')
    await dialog.getByLabel('No screen').uncheck()
    await assertAccessible(page, 'the form of a configuration')
    await screenshot(page, 'console-config-change')
    await dialog.getByRole('button', { name: 'Change', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    const { tag, cpu, memory, vncConsole, scheduler, displayWidth } = (await server.call('GET', `${ns}/vmconfigs/lab`))
      .body
    assert.deepEqual([tag, cpu, memory, vncConsole], [undefined, 3, 0, true])
    assert.deepEqual([scheduler, displayWidth], ['most-allocated', 1_280])
  })

  it('the console names pools that need a configuration before it is deleted', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/configurations')
    await choose(page, 'Actions for ios-build', 'Delete')
    await page.getByRole('dialog').getByText('There will be no more VMs for pool warm, runner pool ci.').waitFor()
    await screenshot(page, 'console-config-delete')
  })

  it('the console creates, changes, pauses, rotates, drains and deletes a pool', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const dialog = page.getByRole('dialog')
    const pool = async () => (await server.call('GET', `${ns}/pools/night`)).body
    await go(page, server, '/pools')
    await page.getByRole('button', { name: 'Create pool' }).first().click()
    await dialog.getByLabel('Name', { exact: true }).fill('night')
    await dialog.getByLabel('Configuration').fill('ios-build')
    await dialog.getByLabel('Minimum idle').fill('3')
    await dialog.getByLabel('Maximum idle').fill('2')
    await dialog.getByRole('button', { name: 'Create pool' }).click()
    await dialog.getByText('minIdle is 3, but maxIdle is 2').first().waitFor()
    await dialog.getByLabel('Minimum idle').fill('1')
    await dialog.getByLabel('Schedule').fill('0 0 30 2 *=1')
    await dialog.getByRole('button', { name: 'Create pool' }).click()
    await dialog
      .getByText(/never fires/)
      .first()
      .waitFor()
    await dialog.getByLabel('Schedule').fill('')
    await assertAccessible(page, 'the form of a pool')
    await dialog.getByRole('button', { name: 'Create pool' }).click()
    await page
      .getByRole('row', { name: /^night/ })
      .getByText('Full', { exact: true })
      .waitFor()
    await page.getByRole('link', { name: 'night' }).click()
    await page.getByRole('heading', { name: 'night', level: 1 }).waitFor()
    await choose(page, 'Actions', 'Change')
    await dialog.getByLabel('Schedule').fill('0 0 * * * Europe/Berlin=2')
    await dialog.getByRole('button', { name: 'Show as command' }).click()
    await dialog.getByText("svc3 pool update night --schedule '0 0 * * * Europe/Berlin=2'").waitFor()
    await dialog.getByRole('button', { name: 'Change', exact: true }).click()
    await page.locator('dd', { hasText: '0 0 * * * Europe/Berlin=2' }).waitFor()
    await eventually(async () => assert.equal((await pool()).ready, 2), 20_000)
    await choose(page, 'Actions', 'Rotate')
    await dialog.getByRole('button', { name: 'Rotate', exact: true }).click()
    await page.getByText('Removed unused').waitFor()
    await page.getByText('Rotated', { exact: true }).waitFor()
    await choose(page, 'Actions', 'Drain')
    await dialog.getByRole('button', { name: 'Drain', exact: true }).click()
    await page.getByText('Paused', { exact: true }).waitFor()
    await page.getByText('The pool is drained').waitFor()
    await page
      .getByText(/drained pool night/)
      .first()
      .waitFor()
    await choose(page, 'Actions', 'Resume')
    await dialog.getByRole('button', { name: 'Resume', exact: true }).click()
    await page.getByText('Full', { exact: true }).waitFor()
    await choose(page, 'Actions', 'Pause')
    await dialog.getByRole('button', { name: 'Pause', exact: true }).click()
    await page.getByText('Paused', { exact: true }).waitFor()
    await choose(page, 'Actions', 'Delete')
    await dialog.getByLabel('Type night to confirm').fill('night')
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('heading', { name: 'Pools', level: 1 }).waitFor()
    assert.equal((await server.call('GET', `${ns}/pools/night`)).status, 404)
  })

  it('the console sets a quota, shows the refusal of one below usage, and lists shares', {
    timeout: 150_000,
  }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const dialog = page.getByRole('dialog')
    await go(page, server, '/quota')
    await page.getByText('No limits', { exact: true }).waitFor()
    await choose(page, 'Actions', 'Set quota')
    await dialog.getByLabel('Maximum VMs').fill('1')
    await dialog.getByRole('button', { name: 'Set quota', exact: true }).click()
    await dialog
      .getByText(/is below use: \d+ VMs in use, limit 1/)
      .first()
      .waitFor()
    await dialog.getByLabel('Maximum VMs').fill('50')
    await dialog.getByLabel('Maximum memory in GiB').fill('512')
    await dialog.getByRole('button', { name: 'Show as command' }).click()
    await dialog.getByText('svc3 quota set --vms 50 --memory 512').waitFor()
    await assertAccessible(page, 'the form of a quota')
    await dialog.getByRole('button', { name: 'Set quota', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByText(/^\d+ of 50$/).waitFor()
    await page.getByText('Room left', { exact: true }).waitFor()
    await page.getByRole('row', { name: /^admin/ }).waitFor()
    await screenshot(page, 'console-quota')
    await choose(page, 'Actions', 'Set quota')
    for (const limit of ['Maximum VMs', 'Maximum memory in GiB']) await dialog.getByLabel(limit).fill('')
    await dialog.getByRole('button', { name: 'Set quota', exact: true }).click()
    await page.getByText('No limits', { exact: true }).waitFor()
  })

  it('the console stores credentials and shows refusals at their field', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/credentials')
    await page.getByRole('button', { name: 'Add credentials' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Registry', { exact: true }).fill('http://registry.example')
    await dialog.getByLabel('User name').fill('bot')
    await dialog.getByLabel('Password').fill('canary-secret-77')
    await dialog.getByRole('button', { name: 'Show as request' }).click()
    assert.equal(await dialog.getByLabel('Password').inputValue(), 'canary-secret-77')
    assert.ok(!(await page.content()).includes('canary-secret-77'), 'not in the page, not even as an attribute')
    await dialog.getByRole('button', { name: 'Add credentials' }).click()
    await dialog.getByRole('alert').first().waitFor()
    await dialog.getByLabel('Allow plain HTTP').check()
    await dialog.getByRole('button', { name: 'Add credentials' }).click()
    await page.getByRole('row', { name: /registry\.example/ }).waitFor()
    assert.ok(!(await page.content()).includes('canary-secret-77'))
  })

  it('the console shows a token of a service account once', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/accounts')
    await choose(page, 'Actions for jenkins', 'Create token')
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click()
    await page.getByText('Copy the token now').waitFor()
    const token = await page.getByRole('dialog').locator('pre').innerText()
    await page.getByRole('button', { name: 'Done' }).click()
    assert.ok(!(await page.content()).includes(token))

    // The token is not an administrator's: other namespaces and pages for administrators are hidden.
    await using theirs = await openConsole(browser, server, token)
    await theirs.page.getByLabel('Namespace').click()
    const choices = theirs.page.getByRole('option')
    await eventually(async () => assert.deepEqual(await choices.allTextContents(), ['All namespaces', 'svc-default']))
    await theirs.page.keyboard.press('Escape')
    assert.equal(await theirs.page.getByRole('link', { name: 'Registry credentials' }).count(), 0)
    await theirs.page.goto(`${server.apiUrl}/console/credentials`)
    await theirs.page.getByRole('alert').waitFor()
    assert.equal(await theirs.page.getByText('ghcr.io').count(), 0)
    await go(theirs.page, server, '/vms/svc-default/web')
    await theirs.page.getByRole('button', { name: 'Actions', exact: true }).click()
    const remove = theirs.page.getByRole('menuitem', { name: 'Delete' })
    assert.match(await reasonOf(remove), /Only .* or an administrator can delete this/)
  })

  it('the console shows who has access to which namespace', { timeout: 150_000 }, async () => {
    const serviceaccounts = [{ name: 'jenkins', namespace: 'svc-default' }]
    const at = '/api/v1/namespaces/svc-ios/rolebindings/svc-dev/subjects/add'
    await call('POST', at, { users: ['ana@example.com'], serviceaccounts })
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const dialog = page.getByRole('dialog')
    await go(page, server, '/access')
    await page.getByRole('row', { name: 'jenkins Service account of svc-default svc-ios' }).waitFor()
    await page.getByRole('row', { name: 'ana@example.com User svc-ios' }).waitFor()
    await screenshot(page, 'console-access')
    await choose(page, 'Actions for ana@example.com', 'Revoke access')
    await dialog.getByText('They can no longer view or change anything in svc-ios.').waitFor()
    await dialog.getByLabel('Type ana@example.com to confirm').fill('ana@example.com')
    await dialog.getByRole('button', { name: 'Revoke access' }).click()
    await page.getByRole('row', { name: 'ana@example.com' }).waitFor({ state: 'detached' })
    await go(page, server, '/quota')
    await page.getByText('Limits for all VMs in svc-default together').waitFor()
  })

  it('the console continues after a restart of the server and keeps typed input', { timeout: 150_000 }, async () => {
    // The page keeps its address although the server gets another port.
    await using proxy = await startTcpProxy(Number(new URL(server.apiUrl).port))
    const at = { apiUrl: `http://127.0.0.1:${proxy.port}` }
    await using opened = await openConsole(browser, at, server.token)
    const { page, context } = opened
    const list = await context.newPage()
    await go(list, at, '/vms')
    const web = list.getByRole('link', { name: 'web', exact: true })
    await web.waitFor()
    // A reload would remove this mark.
    await list.evaluate('window.isSame = true')
    await go(page, at, '/vms?deploy')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('typed-before')
    await server.kill('SIGKILL')
    const lost = page.getByText('Connection lost')
    await lost.waitFor()
    // The last known state stays readable and is marked as stale.
    await list.getByText(/^Connection lost at \d+:\d\d:\d\d/).waitFor()
    assert.ok(await web.isVisible())
    assert.equal(await list.getByRole('alert').count(), 0)
    assert.match(String(await list.evaluate("getComputedStyle(document.querySelector('.page')).filter")), /grayscale/)
    for (const colorScheme of ['light', 'dark'] as const) {
      await list.emulateMedia({ colorScheme })
      await assertAccessible(list, `a list without its server, ${colorScheme}`)
    }
    await screenshot(list, 'console-lost')
    server = await startDev(data, options)
    proxy.aim(Number(new URL(server.apiUrl).port))
    await lost.waitFor({ state: 'detached' })
    await list.getByText('Connection lost').waitFor({ state: 'detached' })
    await call('POST', `${ns}/vms`, { name: 'after-the-restart', image: 'tiny-amd64', cpu: 1 })
    await list.getByRole('link', { name: 'after-the-restart', exact: true }).waitFor()
    assert.equal(await list.evaluate('window.isSame'), true)
    assert.equal(await dialog.getByLabel('Name', { exact: true }).inputValue(), 'typed-before')
    await dialog.getByLabel('Image', { exact: true }).fill('tiny-amd64')
    await dialog.getByRole('button', { name: 'Deploy', exact: true }).click()
    await page.getByRole('heading', { name: 'typed-before', level: 1 }).waitFor()
    await page.locator('.page-head').getByText('Running', { exact: true }).waitFor()
  })

  it('the console shows a list as a command with its filters and namespaces', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/vms?label=team%3Dios&search=web')
    await page.getByRole('button', { name: 'Show as command' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('svc3 vm list --label team=ios --watch -A', { exact: true }).waitFor()
    await dialog.getByText('The command has no option for these filters: search', { exact: true }).waitFor()
  })

  it('the console keeps typed values of a form over a reload, but no secrets', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const kept = async () => String(await page.evaluate('JSON.stringify(sessionStorage)'))
    await go(page, server, '/vms?deploy')
    const form = page.getByRole('dialog')
    await form.getByLabel('Image', { exact: true }).fill('tiny-amd64')
    await form.getByLabel('Name', { exact: true }).fill('typed-and-kept')
    await form.getByText('More options').click()
    await form.getByLabel('First-boot script').fill('canary-userdata')
    await pick(form, 'Node', 'sim-amd64-1')
    await page.reload()
    assert.equal(await form.getByLabel('Name', { exact: true }).inputValue(), 'typed-and-kept')
    assert.equal(await form.getByLabel('Image', { exact: true }).inputValue(), 'tiny-amd64')
    await form.getByText('More options').click()
    await eventually(async () =>
      assert.equal(await form.getByLabel('Node', { exact: true }).textContent(), 'sim-amd64-1'),
    )
    // Closing the form deletes the draft.
    await page.keyboard.press('Escape')
    await form.waitFor({ state: 'detached' })
    assert.doesNotMatch(await kept(), /typed-and-kept|canary/)
    await go(page, server, '/credentials')
    await page.getByRole('button', { name: 'Add credentials' }).first().click()
    await form.getByLabel('User name').fill('robot-user')
    await form.getByLabel('Password').fill('canary-secret')
    assert.match(await kept(), /robot-user/)
    assert.doesNotMatch(await kept(), /canary/)
  })

  it('the console shows its frame before its scripts have loaded', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    let bytes = 0
    const count = async (response: { body(): Promise<Buffer> }): Promise<void> => {
      // The body of a response of the previous page may be unavailable.
      bytes += await response.body().then(
        ({ length }) => length,
        () => 0,
      )
    }
    page.on('response', (response) => void count(response))
    await page.route('**/assets/*.js', () => new Promise<never>(() => undefined))
    await page.goto(`${server.apiUrl}/console/vms`, { waitUntil: 'commit' })
    await page.getByRole('status', { name: 'Loading' }).waitFor()
    assert.equal(await page.locator('.side .brand').innerText(), 'svc3')
    await page.evaluate('document.fonts.ready')
    assert.equal(await page.evaluate("getComputedStyle(document.querySelector('.frame')).display"), 'grid')
    // About half a second at 1 Mbit/s.
    await eventually(() => assert.ok(bytes > 1_000 && bytes < 64_000, `${bytes} bytes before a frame is there`))
  })

  it('the console asks for a new login over the page when the session ends, and keeps typed input', {
    timeout: 150_000,
  }, async () => {
    await using opened = await openConsole(browser, server, undefined)
    const { page, context } = opened
    await page.clock.install()
    await logInWith(page, server.token)
    // The page renews the session in the background before it expires.
    const renewed = page.waitForResponse((response) => response.url().endsWith('/console/session'))
    await page.clock.fastForward('01:00:00')
    assert.equal((await renewed).status(), 200)
    await page.clock.resume()
    await follow(page, server, '/vms?deploy')
    const form = page.getByRole('dialog', { name: 'Deploy VM' })
    await form.getByLabel('Name', { exact: true }).fill('typed-before-the-end')
    await form.getByLabel('Image', { exact: true }).fill('tiny-amd64')
    await context.request.delete(`${server.apiUrl}/console/session`, {
      headers: { 'x-svc3-console': '1', origin: server.apiUrl },
    })
    const again = page.getByRole('dialog', { name: 'Session ended' })
    await again.getByLabel('Token').fill(server.token)
    const late = await holdSessionLook(page)
    await again.getByRole('button', { name: 'Log in', exact: true }).click()
    await again.waitFor({ state: 'detached' })
    // A response to a check from before the login must not end the session again.
    await late()
    assert.equal(await again.count(), 0)
    assert.equal(await form.getByLabel('Name', { exact: true }).inputValue(), 'typed-before-the-end')
    await form.getByRole('button', { name: 'Deploy', exact: true }).click()
    await page.getByRole('heading', { name: 'typed-before-the-end', level: 1 }).waitFor()
  })

  it('the console uploads a dropped file over a lost connection and a reload', {
    timeout: 150_000,
  }, async () => {
    await using proxy = await startTcpProxy(Number(new URL(server.apiUrl).port))
    const at = { apiUrl: `http://127.0.0.1:${proxy.port}` }
    await using opened = await openConsole(browser, at, server.token)
    const { page } = opened
    const size = 9 * 1_048_576
    const dialog = page.getByRole('dialog')
    const begin = async (): Promise<void> => {
      await go(page, at, '/isos')
      await page.getByRole('button', { name: 'Upload', exact: true }).first().click()
      await dropFile(page, 'installer.iso', size)
      await dialog.getByText('installer.iso, 9 MiB').waitFor()
      await dialog.getByRole('button', { name: 'Upload', exact: true }).click()
    }
    // The connections are lost during the second chunk, and the upload resumes. The next try of that chunk is never
    // sent: the page is loaded again, and the same file is dropped.
    let tries = 0
    await page.route('**/uploads/*?offset=8388608', (route) => {
      tries++
      if (tries > 2) return route.continue()
      if (tries === 2) return
      proxy.cut()
      return route.abort()
    })
    await begin()
    await eventually(() => assert.equal(tries, 2))
    const again: string[] = []
    page.on(
      'request',
      (request) => request.url().includes('?offset=') && again.push(request.url().split('=').at(-1) ?? ''),
    )
    await begin()
    await dialog.waitFor({ state: 'detached' })
    await page
      .getByRole('row', { name: /installer\.iso/ })
      .getByText('Ready')
      .waitFor()
    const answer = await fetch(`${server.apiUrl}${ns}/isos/installer.iso/download`, {
      headers: { authorization: `Bearer ${server.token}` },
    })
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(patternOf(size)))
    assert.deepEqual(again, ['8388608'], 'uploaded bytes were sent again')
  })

  it('the console cannot be framed by another site, and refuses its requests', {
    timeout: 150_000,
  }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { context } = opened
    const html = `<iframe src="${server.apiUrl}/console/"></iframe>
      <form method="post" action="${server.apiUrl}${ns}/vms/web/exec" enctype="text/plain"><input name='{"command":"stop","x":"' value='"}'></form>`
    const evil = http.createServer((_request, response) => response.setHeader('content-type', 'text/html').end(html))
    await new Promise<void>((resolve) => evil.listen(0, 'localhost', resolve))
    try {
      const page = await context.newPage()
      await page.goto(`http://localhost:${(evil.address() as AddressInfo).port}/`)
      const frame = page.frames()[1]
      await eventually(async () => assert.match(frame?.url() ?? '', /^chrome-error:/))
      const posted = page.waitForResponse((response) => response.request().method() === 'POST')
      await page.evaluate('document.forms[0].submit()')
      assert.ok((await posted).status() >= 400)
      const { body } = await server.call('GET', `${ns}/vms/web`)
      assert.equal(body.powerState, 'running')
    } finally {
      evil.closeAllConnections()
      evil.close()
    }
  })

  it('the console searches, sorts and filters ten thousand VMs while they change', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const { change } = await serveManyVms(page, 10_000)
    await go(page, server, '/vms')
    await page.getByText('10000 VMs').waitFor()
    await page.getByRole('link', { name: 'vm-00000' }).waitFor()
    await eventually(async () => {
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
      assert.equal(await page.getByRole('link', { name: 'vm-09999' }).count(), 1)
    })
    change([manyVm(9_999, { powerState: 'stopped' })])
    await page
      .getByRole('row', { name: /vm-09999/ })
      .getByText('Stopped')
      .waitFor()
    await page.evaluate('scrollTo(0, 0)')
    await page.getByRole('searchbox').fill('vm-05')
    await page.getByText('1000 of 10000 VMs').waitFor()
    await page.getByRole('button', { name: 'Name' }).click()
    await page.getByRole('link', { name: 'vm-05999' }).waitFor()
    // A dialog keeps its typed text when its row disappears.
    await pick(page, 'Power', 'Running')
    await choose(page, 'Actions for vm-05999', 'Delete')
    const typed = page.getByRole('dialog').getByLabel('Type vm-05999 to confirm')
    await typed.fill('vm-0')
    change([manyVm(5_999, { powerState: 'stopped' })])
    await page.getByRole('link', { name: 'vm-05999', includeHidden: true }).waitFor({ state: 'detached' })
    assert.equal(await typed.inputValue(), 'vm-0')
  })

  it('the console works below a prefix, behind a proxy', { timeout: 150_000 }, async () => {
    const pathPrefix = '/tools/svc3'
    const consoleFolder = path.join(root, 'dist/console')
    await using service = await startService({ settings: { console: { pathPrefix } }, consoleFolder })
    await startNode(service, { name: 'mini-1' })
    await using proxy = await startPrefixProxy(pathPrefix, await service.listen())
    const at = { apiUrl: proxy.url }
    await using opened = await openConsole(browser, at, service.adminToken)
    const { page, complaints } = opened
    await page.getByRole('link', { name: 'Nodes', exact: true }).click()
    await page.getByRole('link', { name: 'mini-1' }).waitFor()
    assert.equal(page.url(), `${proxy.url}/console/nodes`)
    await go(page, at, '/nodes/svc-default/mini-1')
    await page.getByText('0 of 8 used').waitFor()
    assert.deepEqual(complaints, [])
  })

  it('the consoles of two servers on one host stay logged in, each with its own settings', {
    timeout: 150_000,
  }, async () => {
    const consoleFolder = path.join(root, 'dist/console')
    await using other = await startService({ consoleFolder })
    await startNode(other, { name: 'mini-1' })
    const at = { apiUrl: await other.listen() }
    await using opened = await openConsole(browser, server, server.token)
    const { page, context } = opened
    await pick(page, 'Namespace', 'svc-ios')
    await page.getByRole('radio', { name: 'Dark' }).check()
    const second = await context.newPage()
    await second.goto(`${at.apiUrl}/console/`)
    await logInWith(second, other.adminToken)
    assert.deepEqual(
      [
        await second.getByLabel('Namespace', { exact: true }).textContent(),
        await second.getByRole('radio', { name: 'System' }).isChecked(),
      ],
      ['All namespaces', true],
    )
    await page.reload()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await eventually(async () =>
      assert.equal(await page.getByLabel('Namespace', { exact: true }).textContent(), 'svc-ios'),
    )
    await go(second, at, '/nodes')
    await second.getByRole('link', { name: 'mini-1' }).waitFor()
  })

  it('the console loads at most 150 KB before it is shown', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const session = await page.context().newCDPSession(page)
    await session.send('Network.enable')
    let bytes = 0
    const names = new Map<string, string>()
    session.on('Network.responseReceived', ({ requestId, response }) => names.set(requestId, response.url))
    session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      if (names.get(requestId)?.includes('/console/')) bytes += encodedDataLength
    })
    await session.send('Network.clearBrowserCache')
    await page.reload()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    assert.ok(bytes > 50_000 && bytes <= 150 * 1_024, `${bytes} bytes`)
    const folder = path.join(root, 'dist/console/assets')
    const files = (await fs.readdir(folder)).filter((name) => /\.(js|css)$/.test(name))
    for (const name of files) assert.ok(await fs.stat(path.join(folder, `${name}.br`)), name)
  })
})
