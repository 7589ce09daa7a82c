// The API page in a real browser: it shows the operations, runs one, and nothing is refused by its own policy.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { launchBrowser } from '../support/rigs/login.ts'
import { startService, type TestService } from '../support/rigs/service.ts'
import { eventually } from '../support/tools/eventually.ts'

let service: TestService
let browser: Browser
before(async () => {
  service = await startService()
  await service.listen()
  browser = await launchBrowser()
})
after(async () => {
  await browser.close()
  await service[Symbol.asyncDispose]()
})

describe('the API page', () => {
  it('the API page shows every operation and runs one, without a word from the console', {
    timeout: 400_000,
  }, async () => {
    const page = await browser.newPage()
    const complaints: string[] = []
    const elsewhere: string[] = []
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on(
      'request',
      (request) =>
        new URL(request.url()).origin === service.apiUrl ||
        request.url().startsWith('data:') ||
        elsewhere.push(request.url()),
    )
    await page.goto(`${service.apiUrl}/api/v1/swagger`)
    await page.getByText('Store credentials for a registry').first().waitFor()

    await page.locator('.btn.authorize').first().click()
    await page.locator('.auth-container input').fill(service.adminToken)
    await page.locator('.auth-btn-wrapper .authorize').click()
    await page.locator('.auth-btn-wrapper .btn-done').click()
    await page.locator('#operations-namespaces-listNamespaces').click()
    await page.getByRole('button', { name: 'Try it out' }).click()
    await page.getByRole('button', { name: 'Execute' }).click()
    const answer = page.locator('.live-responses-table .response .highlight-code').first()
    await answer.waitFor()
    // Its place is there before its text is.
    await eventually(async () => assert.match(await answer.innerText(), /"name": "svc-default"/))
    assert.deepEqual(complaints, [])
    assert.deepEqual(elsewhere, [])
    if (process.env.SVC3_SCREENSHOTS)
      await page.screenshot({ path: `${process.env.SVC3_SCREENSHOTS}/swagger.png`, fullPage: true })
  })
})
