// Every page of the console in a real browser, on a real server with simulated hosts: what it shows and to whom, light and
// dark, on a phone, over a restart, in two tabs; what it refuses; how much has to be loaded.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { assertAccessible, assertFits, choose, go, logInWith, openConsole } from '../support/console.ts'
import { type DevServer, makeFolder, root, startDev, svc3 } from '../support/dev-server.ts'
import { eventually } from '../support/eventually.ts'
import { fillLogin, launchBrowser, screenshot } from '../support/login.ts'
import { manyVm, serveManyVms } from '../support/many-vms.ts'
import { startPrefixProxy } from '../support/prefix-proxy.ts'

const ns = '/api/v1/namespaces/svc-default'
const markup = '<img src=x onerror="window.hit=1"><b>bold</b>'
const options = { args: ['--driver', 'simulated', '--simulate', 'boot=20ms,stop=20ms', '--nodes', 'arm64=2,amd64=2'] }
let data: string
let server: DevServer
let browser: Browser

const call = async (method: string, url: string, body?: unknown): Promise<void> => {
  const answer = await server.call(method, url, body)
  assert.ok(answer.status < 300, `${method} ${url}: ${JSON.stringify(answer.body)}`)
}

before(async () => {
  data = await makeFolder()
  ;[server, browser] = await Promise.all([startDev(data, options), launchBrowser()])
  await call('POST', '/api/v1/namespaces', { name: 'svc-ios' })
  await call('POST', `${ns}/vms`, { name: 'web', image: 'tiny-amd64', cpu: 1, labels: { team: 'ios' } })
  await call('POST', `${ns}/vms?wait=false`, { name: 'huge', image: 'tiny-arm64', cpu: 64 })
  await call('POST', `${ns}/images/tiny-amd64/copy`, { name: 'copied', description: markup })
  await call('POST', `${ns}/vmconfigs`, { name: 'ios-build', image: 'tiny-arm64', cpu: 2 })
  await call('POST', `${ns}/serviceaccounts/jenkins`)
  await call('POST', `${ns}/secrets/registrycredentials/add`, {
    server: 'https://ghcr.io',
    username: 'ci',
    password: 'canary-password',
  })
})
after(async () => {
  await browser.close()
  await server[Symbol.asyncDispose]()
  await fs.rm(data, { recursive: true, force: true })
})

const pages = [
  ['/', 'Overview'],
  ['/vms', 'VMs'],
  ['/vms/svc-default/web', 'web'],
  ['/vms/svc-default/huge', 'huge'],
  ['/vms?deploy', 'VMs'],
  ['/images', 'Images'],
  ['/images/copied', 'copied'],
  ['/isos', 'ISOs'],
  ['/pushes', 'Push jobs'],
  ['/nodes', 'Nodes'],
  ['/nodes/svc-default/sim-amd64-1', 'sim-amd64-1'],
  ['/nodes?join', 'Nodes'],
  ['/configurations', 'Configurations'],
  ['/events', 'Events'],
  ['/charts', 'Charts'],
  ['/credentials', 'Registry credentials'],
  ['/namespaces', 'Namespaces'],
  ['/access', 'Access'],
  ['/accounts', 'Service accounts'],
  ['/legacy', 'Legacy usage'],
  ['/nowhere', 'There is no such page'],
] as const

async function lookAt(page: Page, place: string, title: string): Promise<void> {
  const picture = `console${place.replaceAll(/\W+/g, '-')}`
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 1440, height: 900 })
  await page.goto(`${server.apiUrl}/console${place}`)
  await page.getByRole('heading', { name: title, level: 1, exact: true, includeHidden: true }).waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  await screenshot(page, `${picture}-light`)
  await assertAccessible(page, `${place}, light`)
  await assertFits(page, place)
  await page.emulateMedia({ colorScheme: 'dark' })
  await screenshot(page, `${picture}-dark`)
  await assertAccessible(page, `${place}, dark`, ['color-contrast', 'link-in-text-block'])
  await page.setViewportSize({ width: 390, height: 844 })
  await screenshot(page, `${picture}-phone`)
  await assertFits(page, `${place} on a phone`)
  await assertAccessible(page, `${place} on a phone`, ['region', 'scrollable-region-focusable', 'target-size'])
}

describe('the console', () => {
  // In parts, so that none of them is near its limit on a machine that has other things to do.
  for (const [part, some] of [pages.slice(0, 7), pages.slice(7, 14), pages.slice(14)].entries()) {
    it(`has nothing for axe to find, light, dark and on a phone (${part + 1})`, { timeout: 170_000 }, async () => {
      await using opened = await openConsole(browser, server, undefined)
      const { page, complaints } = opened
      await page.getByLabel('Token').waitFor()
      await assertAccessible(page, 'login')
      await logInWith(page, server.token)
      for (const [place, title] of some) await lookAt(page, place, title)
      assert.deepEqual(complaints, [])
    })
  }

  it('is given no token to keep, and says what is wrong with one', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, undefined)
    const { page, context } = opened
    await page.getByLabel('Token').fill('not-a-token')
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.getByRole('alert').waitFor()
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

  it('logs in by the identity provider, and out in every tab', { timeout: 150_000 }, async () => {
    const words = ['server', 'users', 'add', 'ada@example.com', '--password-stdin', '--data', data]
    assert.equal((await svc3(words, { input: 'canary-password-1\n' })).code, 0)
    await using opened = await openConsole(browser, server, undefined)
    const { page, context } = opened
    await page.goto(`${server.apiUrl}/console/nodes`)
    await page.getByRole('link', { name: 'Log in with your identity provider' }).click()
    await fillLogin(page, 'ada@example.com', 'canary-password-1')
    await page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
    const other = await context.newPage()
    await go(other, server, '/vms')
    await choose(page, 'Account', 'Log out everywhere')
    await page.getByLabel('Token').waitFor()
    await other.getByLabel('Token').waitFor()
  })

  it('shows markup as text', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page, complaints } = opened
    await go(page, server, '/images/copied')
    await page.getByText(markup).first().waitFor()
    assert.equal(await page.evaluate('window.hit'), undefined)
    assert.deepEqual(complaints, [])
  })

  it('shows a change within moments, in two tabs, without a reload', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page, context } = opened
    const other = await context.newPage()
    await Promise.all([go(page, server, '/vms'), go(other, server, '/')])
    await call('POST', `${ns}/vms`, { name: 'fresh', image: 'tiny-amd64', cpu: 1 })
    const row = page.getByRole('row', { name: /^fresh/ })
    await row.getByText('running', { exact: true }).waitFor()
    await other.getByText('deploy a VM: fresh').waitFor()
    await call('POST', `${ns}/vms/fresh/exec`, { command: 'stop' })
    await row.getByText('stopped', { exact: true }).waitFor()
    await call('DELETE', `${ns}/vms/fresh`)
    await row.waitFor({ state: 'detached' })
  })

  it('says why an action may not be taken, and what would do the same', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/vms/svc-default/web')
    await page.getByRole('button', { name: 'Actions', exact: true }).click()
    const start = page.getByRole('menuitem', { name: 'Start', exact: true })
    assert.equal(await start.getAttribute('aria-disabled'), 'true')
    assert.match(await start.innerText(), /vm "web" is running: only a stopped VM can be started/)
    await page.getByRole('menuitem', { name: 'Stop', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Show as command' }).click()
    await dialog.getByText('svc3 vm stop web').waitFor()
    await dialog.getByRole('button', { name: 'Show as request' }).click()
    await dialog.getByText('-d \'{"command":"stop"}\'').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await go(page, server, '/vms/svc-default/huge')
    await page.getByText('Why it waits, node by node').waitFor()
    await page.getByText('node "sim-arm64-1" has').first().waitFor()
  })

  it('asks for the name before it deletes', { timeout: 150_000 }, async () => {
    await call('POST', `${ns}/vms`, { name: 'doomed', image: 'tiny-amd64', cpu: 1 })
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/vms/svc-default/doomed')
    await choose(page, 'Actions', 'Delete')
    const dialog = page.getByRole('dialog')
    const button = dialog.getByRole('button', { name: 'Delete', exact: true })
    // Whoever presses it all the same gets no further.
    await button.click({ force: true })
    assert.equal((await server.call('GET', `${ns}/vms/doomed`)).status, 200)
    await dialog.getByLabel('Type doomed to confirm').fill('doomed')
    await button.click()
    await page.getByRole('heading', { name: 'VMs', level: 1 }).waitFor()
    assert.equal((await server.call('GET', `${ns}/vms/doomed`)).status, 404)
  })

  it('stores credentials, and shows refusals where they belong', { timeout: 150_000 }, async () => {
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

  it('shows a token of a service account once', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/accounts')
    await choose(page, 'Actions for jenkins', 'Make a token')
    await page.getByRole('dialog').getByRole('button', { name: 'Make a token' }).click()
    await page.getByText('Copy it now').waitFor()
    const token = await page.getByRole('dialog').locator('pre').innerText()
    await page.getByRole('button', { name: 'Done' }).click()
    assert.ok(!(await page.content()).includes(token))

    // With it, somebody who is no administrator: other namespaces and what is for administrators are not there.
    await using theirs = await openConsole(browser, server, token)
    const choices = theirs.page.getByLabel('Namespace').locator('option')
    await eventually(async () => assert.deepEqual(await choices.allTextContents(), ['All namespaces', 'svc-default']))
    assert.equal(await theirs.page.getByRole('link', { name: 'Registry credentials' }).count(), 0)
    await theirs.page.goto(`${server.apiUrl}/console/credentials`)
    await theirs.page.getByRole('alert').waitFor()
    assert.equal(await theirs.page.getByText('ghcr.io').count(), 0)
    await go(theirs.page, server, '/vms/svc-default/web')
    await theirs.page.getByRole('button', { name: 'Actions', exact: true }).click()
    const remove = theirs.page.getByRole('menuitem', { name: 'Delete' })
    assert.match(await remove.innerText(), /only .* or an administrator can delete it/)
  })

  it('goes on after a restart of the server, with what was typed', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await go(page, server, '/vms?deploy')
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('typed-before')
    const listen = new URL(server.apiUrl).host
    await server.kill('SIGKILL')
    await page.getByText('The connection to the service was lost').waitFor()
    server = await startDev(data, { ...options, listen })
    await page.getByText('The connection to the service was lost').waitFor({ state: 'detached' })
    const dialog = page.getByRole('dialog')
    assert.equal(await dialog.getByLabel('Name', { exact: true }).inputValue(), 'typed-before')
    await dialog.getByLabel('Image', { exact: true }).fill('tiny-amd64')
    await dialog.getByRole('button', { name: 'Deploy', exact: true }).click()
    await page.getByRole('heading', { name: 'typed-before', level: 1 }).waitFor()
    await page.locator('.page-head').getByText('running').waitFor()
  })

  it('is used by keyboard alone', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    await page.keyboard.press('g')
    await page.keyboard.press('v')
    await page.getByRole('heading', { name: 'VMs', level: 1 }).waitFor()
    await page.getByRole('searchbox').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('web')
    await page.getByText(/^1 of \d+ VMs$/).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'web', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'web', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Actions', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('menuitem', { name: 'Start', exact: true }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  it('is not shown in a frame of another site, and takes no requests from there', { timeout: 150_000 }, async () => {
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
      await eventually(async () => assert.match(frame?.url() ?? '', /chrome-error|about:blank/))
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

  it('draws only what is looked at of ten thousand VMs', { timeout: 150_000 }, async () => {
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const { change } = await serveManyVms(page, 10_000)
    await go(page, server, '/vms')
    await page.getByText('10000 VMs').waitFor()
    await page.getByRole('link', { name: 'vm-00000' }).waitFor()
    const drawn = async (): Promise<number> => page.locator('tr[data-row]').count()
    assert.ok((await drawn()) < 100, String(await drawn()))
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
    await page.getByRole('link', { name: 'vm-09999' }).waitFor()
    assert.ok((await drawn()) < 100, String(await drawn()))
    change([manyVm(9_999, { powerState: 'stopped' })])
    await page
      .getByRole('row', { name: /vm-09999/ })
      .getByText('stopped')
      .waitFor()
    await page.evaluate('scrollTo(0, 0)')
    await page.getByRole('searchbox').fill('vm-05')
    await page.getByText('1000 of 10000 VMs').waitFor()
    await page.getByRole('button', { name: 'Name' }).click()
    await page.getByRole('link', { name: 'vm-05999' }).waitFor()
  })

  it('works below a prefix, behind a proxy', { timeout: 150_000 }, async () => {
    const own = await makeFolder()
    // Declared first, so that it happens last: when the server that has the folder is gone.
    await using _removal = { [Symbol.asyncDispose]: () => fs.rm(own, { recursive: true, force: true }) }
    await fs.writeFile(path.join(own, 'config.json'), JSON.stringify({ console: { pathPrefix: '/tools/svc3' } }))
    await using behind = await startDev(own, { args: ['--driver', 'simulated', '--nodes', 'amd64=1'] })
    await using proxy = await startPrefixProxy('/tools/svc3', behind.apiUrl)
    const at = { apiUrl: proxy.url }
    await using opened = await openConsole(browser, at, behind.token)
    const { page, complaints } = opened
    await page.getByRole('link', { name: 'Nodes', exact: true }).click()
    await page.getByRole('link', { name: 'sim-amd64-1' }).waitFor()
    assert.equal(page.url(), `${proxy.url}/console/nodes`)
    await go(page, at, '/nodes/svc-default/sim-amd64-1')
    await page.getByText('0 of 12 in use').waitFor()
    assert.deepEqual(complaints, [])
  })

  it('asks for at most 150 KB before it is shown', { timeout: 150_000 }, async () => {
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
