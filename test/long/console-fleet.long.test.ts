// A thousand nodes and ten thousand VMs in a real browser, on the real watches of a server that has their records: how
// soon rows are there, how smoothly they scroll, how soon the finder answers a key, and what the page keeps in memory.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { assertAccessible, go, type Opened } from '../support/rigs/console.ts'
import { openFleet } from '../support/rigs/console-fleet.ts'
import { screenshot } from '../support/rigs/login.ts'
import type { TestService } from '../support/rigs/service.ts'
import { type FrameCosts, frameCosts } from '../support/tools/main-thread.ts'

const [nodes, vmsOfEach] = [1_000, 10]
const count = nodes * vmsOfEach

let fleet: Awaited<ReturnType<typeof openFleet>>
let service: TestService
let browser: Browser
let opened: Opened
let page: Page

before(async () => {
  fleet = await openFleet({ nodes, vmsOfEach })
  ;({ service, browser, opened } = fleet)
  page = opened.page
})
after(() => fleet[Symbol.asyncDispose]())

/**
 * What a frame may cost its page at most, in milliseconds of processor time: half of the time of a frame at 60 frames a
 * second.
 */
const frameMs = 8

const shown = (costs: FrameCosts): string =>
  Object.entries(costs)
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
    // As far in each frame as a wheel that is turned quickly.
    const scrolled = await frameCosts(browser, page, { count: 300, work: 'scrollBy(0, 160)' })
    t.diagnostic(`milliseconds of the main thread for a frame: ${shown(scrolled)}`)
    assert.ok(scrolled.p95 <= frameMs, shown(scrolled))
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
