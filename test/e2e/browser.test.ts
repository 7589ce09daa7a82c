// The console in a real browser on a real server with simulated hosts, on one short path: a login, a VM that is deployed and
// deleted. Every page and every action is in the full suite.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { after, before, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { type DevServer, makeFolder, startDev } from '../support/processes/dev-server.ts'
import { assertAccessible, assertFits, choose, go, openConsole } from '../support/rigs/console.ts'
import { launchBrowser } from '../support/rigs/login.ts'

let data: string
let server: DevServer
let browser: Browser

before(async () => {
  data = await makeFolder()
  const args = ['--driver', 'simulated', '--simulate', 'boot=20ms,stop=20ms', '--nodes', 'arm64=1,amd64=1']
  ;[server, browser] = await Promise.all([startDev(data, { args }), launchBrowser()])
})
after(async () => {
  await browser.close()
  await server.kill('SIGTERM')
  await fs.rm(data, { recursive: true, force: true })
})

it('a person logs in to the console, deploys a VM, sees it run, and deletes it', { timeout: 300_000 }, async () => {
  await using opened = await openConsole(browser, server, server.token)
  const { page, complaints } = opened
  await assertAccessible(page, 'the overview')
  await go(page, server, '/vms?deploy')
  const form = page.getByRole('dialog')
  await form.getByLabel('Image', { exact: true }).fill('tiny-amd64')
  await form.getByLabel('Name', { exact: true }).fill('web')
  await form.getByLabel('Cores').fill('1')
  await form.locator('.note[data-tone=good]').waitFor()
  await form.getByRole('button', { name: 'Deploy', exact: true }).click()
  await page.getByRole('heading', { name: 'web', level: 1 }).waitFor()
  await page.locator('.page-head').getByText('Running', { exact: true }).waitFor()
  await assertAccessible(page, 'the page of a VM')
  await assertFits(page, 'the page of a VM')
  await choose(page, 'Actions', 'Delete')
  const question = page.getByRole('dialog')
  await question.getByRole('textbox').fill('web')
  await question.getByRole('button', { name: 'Delete', exact: true }).click()
  await question.waitFor({ state: 'detached' })
  await go(page, server, '/vms')
  assert.equal(await page.getByRole('row', { name: /(^|\/)web/ }).count(), 0)
  assert.equal((await server.call('GET', '/api/v1/namespaces/svc-default/vms/web')).status, 404)
  assert.deepEqual(complaints, [], 'the browser has nothing to say against the pages')
})
