// A thousand nodes and ten thousand VMs in a real browser, on the real watches of a server that has their records: how soon rows are
// there, how smoothly they scroll, how soon the finder answers a key, and what the page keeps in memory.
import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { root } from '../support/processes/dev-server.ts'
import { assertAccessible, go, type Opened, openConsole } from '../support/rigs/console.ts'
import { launchBrowser, screenshot } from '../support/rigs/login.ts'
import { addManyRecords } from '../support/rigs/many-records.ts'
import { startService, type TestService } from '../support/rigs/service.ts'

const [nodes, vmsOfEach] = [1_000, 10]
const count = nodes * vmsOfEach

let browser: Browser
let service: TestService
let opened: Opened
let page: Page

before(async () => {
  service = await startService({ consoleFolder: path.join(root, 'dist/console') })
  service.clock.nowMs = Date.now()
  await addManyRecords(service, { nodes, vmsOfEach })
  browser = await launchBrowser()
  const apiUrl = await service.listen()
  const token = await service.tokenFor({ kind: 'user', name: 'admin@acme.dev', admin: true })
  opened = await openConsole(browser, { apiUrl }, token)
  page = opened.page
})
after(async () => {
  await browser.close()
  await service[Symbol.asyncDispose]()
})

/** Times between frames while a page is scrolled as a wheel does, in milliseconds, from the shortest. */
const scrolling = `new Promise((resolve) => {
  const gaps = []
  let lastMs
  scrollTo(0, 0)
  const next = (nowMs) => {
    if (lastMs !== undefined) gaps.push(nowMs - lastMs)
    lastMs = nowMs
    if (gaps.length === 300) return resolve(gaps.sort((a, b) => a - b))
    scrollBy(0, 160)
    requestAnimationFrame(next)
  }
  requestAnimationFrame(next)
})`
async function framesOf(
  scrolled: Page,
): Promise<{ readonly p50: number; readonly p95: number; readonly most: number }> {
  await scrolled.bringToFront()
  const gaps = (await scrolled.evaluate(scrolling)) as readonly number[]
  const at = (part: number): number => gaps[Math.floor(part * (gaps.length - 1))] ?? Number.NaN
  return { p50: at(0.5), p95: at(0.95), most: at(1) }
}

const shown = (values: Readonly<Record<string, number>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name} ${value.toFixed(1)}`)
    .join(', ')

describe('the console of a thousand nodes', () => {
  it('the console of a thousand nodes scrolls ten thousand VMs and draws a screen of them', {
    timeout: 175_000,
  }, async (t) => {
    const startMs = performance.now()
    await go(page, service, '/vms')
    await page.locator('tr[data-row]').first().waitFor()
    t.diagnostic(`first rows of ${count} VMs after ${Math.round(performance.now() - startMs)} ms`)
    await page.getByText(`${count} VMs`).waitFor()
    const bare = await opened.context.newPage()
    await bare.setContent('<div style="height: 400000px">nothing</div>')
    const empty = await framesOf(bare)
    const table = await framesOf(page)
    t.diagnostic(`milliseconds between frames: ${shown(table)}; of an empty page: ${shown(empty)}`)
    await bare.close()
    // What is drawn decides it, and not how busy the machine is: some rows for each frame, whatever there is.
    assert.ok((await page.locator('tr[data-row]').count()) < 80)
    const session = await opened.context.newCDPSession(page)
    await session.send('HeapProfiler.collectGarbage')
    const { usedSize } = await session.send('Runtime.getHeapUsage')
    t.diagnostic(`heap of the page ${Math.round(usedSize / 2 ** 20)} MiB`)
    assert.ok(usedSize < 200 * 2 ** 20, String(usedSize))
  })

  it('the console of a thousand nodes shows them on one screen', { timeout: 175_000 }, async (t) => {
    const startMs = performance.now()
    await go(page, service, '/')
    const cells = page.locator('.cells a')
    await cells.first().waitFor()
    t.diagnostic(`map of ${nodes} nodes after ${Math.round(performance.now() - startMs)} ms`)
    assert.equal(await cells.count(), nodes)
    const last = await cells.last().boundingBox()
    assert.ok(last && last.y + last.height <= 900, JSON.stringify(last))
    await assertAccessible(page, 'the overview of a thousand nodes')
    await screenshot(page, 'console-thousand-nodes')
  })

  it('the console of a thousand nodes finds one of ten thousand VMs with every key', {
    timeout: 175_000,
  }, async (t) => {
    await page.keyboard.press('Control+k')
    const finder = page.getByRole('dialog')
    await finder.getByRole('option').first().waitFor()
    const name = 'vm-9876'
    // From the key until the next frame shows what it found; the longest of them.
    await page.evaluate(`addEventListener('keydown', () => {
      const startMs = performance.now()
      requestAnimationFrame(() => setTimeout(() => (window.keyMs = [...(window.keyMs ?? []), performance.now() - startMs])))
    }, true)`)
    for (const key of name) {
      await page.keyboard.press(key)
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))')
    }
    await finder.getByRole('option', { name: new RegExp(name) }).waitFor()
    const times = (await page.evaluate('window.keyMs')) as readonly number[]
    t.diagnostic(`milliseconds from each key to its frame: ${times.map((each) => each.toFixed(0)).join(' ')}`)
    // The page of a VM asks its node, and nothing runs there.
    assert.deepEqual(opened.complaints, [])
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name, level: 1 }).waitFor()
  })
})
