// Pages that stay open: watches, terminals that come and go, charts and sessions over many changes do not grow the server.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import v8 from 'node:v8'
import vm from 'node:vm'
import WebSocket from 'ws'
import { logIn, openBrowser } from '../support/processes/browser.ts'
import { startService, type TestService } from '../support/rigs/service.ts'
import { eventually } from '../support/tools/eventually.ts'

let service: TestService
let url: string
before(async () => {
  service = await startService({ logLevel: 'silent' })
  url = await service.listen()
})
after(() => service[Symbol.asyncDispose]())

v8.setFlagsFromString('--expose-gc')
const collectGarbage = vm.runInNewContext('gc') as () => void

async function heapBytes(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    collectGarbage()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

interface Page {
  readonly socket: WebSocket
  seen: number
}

const inDefault = '/api/v1/namespaces/svc-default'
/** What an overview watches, each connection being one more; all of them stay below what one caller may have open. */
const watched = [
  '/api/v1/namespaces',
  ...['vms', 'nodes', 'images', 'events', 'pushjobs'].map((list) => `${inDefault}/${list}`),
]
const openPages = 10

async function openPage(cookie: string): Promise<Page> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/watch`, { headers: { cookie, origin: url } })
  const page = { socket, seen: 0 }
  socket.on('message', (data) => {
    page.seen += [JSON.parse(String(data))].flat().filter(({ type }: { type: string }) => type === 'MODIFIED').length
  })
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  for (const [watch, path] of watched.entries()) socket.send(JSON.stringify({ watch, path }))
  return page
}

const changes = 500
/** As many changes as a busy hour has, seen by pages of which some stay and some come and go. */
async function hour(cookie: string): Promise<void> {
  const pages = await Promise.all(Array.from({ length: openPages }, () => openPage(cookie)))
  await eventually(() => assert.equal(service.services.metrics.watches.open, openPages * (watched.length + 1)))
  const { namespaces } = service.services.collections
  for (let change = 0; change < changes; change++) {
    const entry = namespaces.get('', 'svc-default')
    assert.ok(entry)
    await namespaces.update(entry, { ...entry.value, createdAt: new Date(change * 1_000).toISOString() })
    service.clock.nowMs += 7_200
    if (change % 50 === 0) await service.call('GET', '/api/v1/charts')
  }
  await eventually(() => assert.ok(pages.every(({ seen }) => seen > 0)))
  for (const { socket } of pages) socket.terminate()
  await eventually(() => assert.equal(service.services.metrics.watches.open, 0))
}

describe('pages that are open for hours', () => {
  it('pages that are open for hours do not grow the server', { timeout: 300_000 }, async () => {
    const token = await service.services.tokens.issue(
      { kind: 'user', name: 'a@example.com', admin: true },
      30 * 24 * 3_600,
    )
    const browser = openBrowser(service, url)
    await logIn(browser, token.token)
    for (let warm = 0; warm < 3; warm++) await hour(browser.cookieHeader())
    const before = await heapBytes()
    for (let count = 0; count < 10; count++) await hour(browser.cookieHeader())
    const grownMiB = ((await heapBytes()) - before) / 2 ** 20
    // The memory store keeps a log of changes, and that log has an end; 5,000 changes of it are less than this.
    assert.ok(grownMiB < 16, `grew by ${grownMiB.toFixed(1)} MiB in ten hours`)
  })
})
