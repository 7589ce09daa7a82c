// The actions of the console's pages, taken as a person takes them: that it reaches the service, and that the page
// shows what came of it. With names as long as they may be, on a phone, nothing is wider than the window.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { type DevServer, makeFolder, startDev } from '../support/processes/dev-server.ts'
import { assertFits, choose, go, type Opened, openConsole, pick } from '../support/rigs/console.ts'
import { launchBrowser } from '../support/rigs/login.ts'
import { eventually } from '../support/tools/eventually.ts'

const ns = '/api/v1/namespaces/svc-default'
const node = 'sim-amd64-1'
let data: string
let server: DevServer
let browser: Browser
let opened: Opened
let page: Page

before(async () => {
  data = await makeFolder()
  const args = ['--driver', 'simulated', '--simulate', 'boot=20ms,stop=20ms', '--nodes', 'arm64=1,amd64=2']
  ;[server, browser] = await Promise.all([startDev(data, { args }), launchBrowser()])
  opened = await openConsole(browser, server, server.token)
  page = opened.page
  await call('POST', `${ns}/vms`, { name: 'web', image: 'tiny-amd64', cpu: 1, labels: { team: 'ios' } })
  await call('POST', `${ns}/vms`, { name: 'other', image: 'tiny-amd64', cpu: 1 })
})
after(async () => {
  await browser.close()
  await server[Symbol.asyncDispose]()
  await fs.rm(data, { recursive: true, force: true })
})

async function call(method: string, url: string, body?: unknown): Promise<void> {
  const answer = await server.call(method, url, body)
  assert.ok(answer.status < 300, `${method} ${url}: ${JSON.stringify(answer.body)}`)
}
const get = async (url: string) => (await server.call('GET', url)).body
const dialog = () => page.getByRole('dialog')
/** Presses the button of the dialog, and waits until the dialog has closed. */
async function submit(label: string): Promise<void> {
  await dialog().getByRole('button', { name: label, exact: true }).click()
  await dialog().waitFor({ state: 'detached' })
}
async function confirm(name: string, label: string): Promise<void> {
  await dialog().getByLabel(`Type ${name} to confirm`).fill(name)
  await submit(label)
}
const row = (name: string) => page.getByRole('row', { name: new RegExp(`(^|/)${name}`) })

describe('the actions of the console', () => {
  it('the actions of the console on nodes: cordon, tag, drain, and a line with which a host joins', {
    timeout: 170_000,
  }, async () => {
    await go(page, server, '/nodes')
    const actions = `Actions for ${node}`
    await choose(page, actions, 'Cordon')
    await submit('Cordon')
    await row(node).getByText('Cordoned').waitFor()
    await choose(page, actions, 'Uncordon')
    await submit('Uncordon')
    await row(node).getByText('Ready').waitFor()
    await choose(page, actions, 'Add tag')
    await dialog().getByLabel('Tag').fill('ci')
    await submit('Add tag')
    await row(node).getByText('ci', { exact: true }).waitFor()
    await choose(page, actions, 'Remove tag')
    await submit('Remove tag')
    await row(node).getByText('ci', { exact: true }).waitFor({ state: 'detached' })
    await choose(page, actions, 'Drain')
    await submit('Drain')
    await row(node).getByText('Cordoned').waitFor()
    await choose(page, actions, 'Uncordon')
    await submit('Uncordon')
    await page.getByRole('button', { name: 'Add node' }).click()
    await dialog().getByRole('button', { name: 'Create join command' }).click()
    await dialog()
      .getByText(/^printf %s '.+' \| svc3 agent --join-token-stdin$/)
      .waitFor()
    await page.keyboard.press('Escape')
    await go(page, server, `/nodes/svc-default/${node}`)
    await page.getByRole('list', { name: 'Events' }).getByText(/join/i).first().waitFor()
  })

  it('the actions of the console on VMs: filters that the address keeps, ports, when it ends, what it wrote', {
    timeout: 170_000,
  }, async () => {
    await go(page, server, '/vms')
    await pick(page, 'Label', 'team=ios')
    await page.getByText('1 of 2 VMs').waitFor()
    await page.reload()
    await page.getByText('1 of 2 VMs').waitFor()
    await choose(page, 'Actions for web', 'Set expiry')
    await submit('Set expiry')
    await eventually(async () => assert.ok((await get(`${ns}/vms/web`)).expiresAt))
    await page.getByRole('link', { name: 'web', exact: true }).click()
    await opened.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy SSH address' }).click()
    const { ip, ssh } = await get(`${ns}/vms/web`)
    await eventually(async () => assert.equal(await page.evaluate('navigator.clipboard.readText()'), `${ip}:${ssh}`))
    await page.getByRole('button', { name: 'Show output' }).click()
    await page.getByRole('log').waitFor()
  })

  it('the actions of the console on images: copies on nodes as they come, copy, describe, delete', {
    timeout: 170_000,
  }, async () => {
    await go(page, server, '/images/tiny-amd64')
    await choose(page, 'Actions', 'Copy')
    await dialog().getByLabel('Name of the copy').fill('mine')
    await submit('Copy')
    await go(page, server, '/images/mine')
    await choose(page, 'Actions', 'Edit description')
    await dialog().getByLabel('Description').fill('what it is for')
    await submit('Edit description')
    await page.getByText('what it is for', { exact: true }).waitFor()
    await choose(page, 'Actions', 'Cache on all nodes')
    await submit('Cache on all nodes')
    await page.getByRole('link', { name: node, exact: true }).waitFor()
    await choose(page, 'Actions', 'Delete')
    await confirm('mine', 'Delete')
    await page.getByRole('heading', { name: 'Images', level: 1 }).waitFor()
    assert.equal((await server.call('GET', `${ns}/images/mine`)).status, 404)
  })

  it('the actions of the console on configurations, namespaces, access, accounts and credentials', {
    timeout: 170_000,
  }, async () => {
    await go(page, server, '/configurations')
    await page.getByRole('button', { name: 'Create configuration' }).first().click()
    await dialog().getByLabel('Name', { exact: true }).fill('build')
    await dialog().getByLabel('Image', { exact: true }).fill('tiny-amd64')
    await submit('Create configuration')
    await choose(page, 'Actions for build', 'Delete')
    await confirm('build', 'Delete')
    await row('build').waitFor({ state: 'detached' })

    await go(page, server, '/namespaces')
    await page.getByRole('button', { name: 'Create namespace' }).click()
    await dialog().getByLabel('Name', { exact: true }).fill('svc-mine')
    await submit('Create namespace')
    await choose(page, 'Actions for svc-mine', 'Delete')
    await confirm('svc-mine', 'Delete')
    await row('svc-mine').waitFor({ state: 'detached' })

    await go(page, server, '/access')
    await page.getByRole('button', { name: 'Grant access' }).first().click()
    await dialog().getByLabel('Users').fill('ada@example.com')
    await submit('Grant access')
    await row('ada@example.com').waitFor()
    await choose(page, 'Actions for ada@example.com', 'Revoke access')
    await confirm('ada@example.com', 'Revoke access')
    await row('ada@example.com').waitFor({ state: 'detached' })

    await go(page, server, '/accounts')
    await page.getByRole('button', { name: 'Create service account' }).first().click()
    await dialog().getByLabel('Name', { exact: true }).fill('bot')
    await submit('Create service account')
    await choose(page, 'Actions for bot', 'Delete')
    await confirm('bot', 'Delete')
    await row('bot').waitFor({ state: 'detached' })
  })

  it('the console shows who still calls the old API, and what replaces each call', { timeout: 170_000 }, async () => {
    await server.call('GET', '/resources/vm/list')
    await go(page, server, '/legacy')
    await page
      .getByRole('row', { name: /resources\/vm\/list/ })
      .getByText(/svc3|\/api\/v1/)
      .first()
      .waitFor()
  })

  it('the console fits on a phone with names as long as they may be', { timeout: 170_000 }, async () => {
    const name = `a${'-long-name'.repeat(6)}`.slice(0, 63)
    const labels = { ['k'.repeat(60)]: 'v'.repeat(60) }
    await call('POST', `${ns}/vms`, { name, image: 'tiny-amd64', cpu: 1, labels })
    await call('POST', `${ns}/images/tiny-amd64/copy`, { name: 'i'.repeat(63), description: 'd'.repeat(900) })
    await call('POST', `${ns}/nodes/${node}/tag`, { tag: 't'.repeat(60) })
    await page.setViewportSize({ width: 390, height: 844 })
    const places = [
      '/',
      '/vms',
      `/vms/svc-default/${name}`,
      '/images',
      `/images/${'i'.repeat(63)}`,
      '/nodes',
      '/events',
    ]
    for (const place of places) {
      await go(page, server, place)
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      await assertFits(page, place)
    }
  })

  it('the pages of the console had nothing to say against themselves', () => assert.deepEqual(opened.complaints, []))
})
