// The console's table in a real browser, with two thousand VMs: drawn rows, column widths and choices, the state in the
// URL, and placeholders while loading.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { assertAccessible, assertFits, go, type Opened, pick } from '../support/rigs/console.ts'
import { openFleet } from '../support/rigs/console-fleet.ts'
import type { TestService } from '../support/rigs/service.ts'
import { eventually } from '../support/tools/eventually.ts'

const count = 2_000
const longName = `a-${'long-'.repeat(8)}name`
const owners = ['ada@acme.dev', 'somebody.with.a.long.name@department.acme.dev']

let fleet: Awaited<ReturnType<typeof openFleet>>
let service: TestService
let opened: Opened
let page: Page

before(async () => {
  fleet = await openFleet({
    nodes: count / 10,
    vmsOfEach: 10,
    change: (vm, index) => ({
      ...vm,
      name: index === 0 ? longName : vm.name,
      owner: owners[index % 2] ?? '',
      observed: { ...vm.observed, power: index % 100 === 0 ? 'stopped' : 'running' },
    }),
  })
  ;({ service, opened } = fleet)
  page = opened.page
})
after(() => fleet[Symbol.asyncDispose]())

const header = (title: string) => page.getByRole('columnheader', { name: title, exact: true })
const widthOf = async (title: string): Promise<number> => Math.round((await header(title).boundingBox())?.width ?? 0)
const edgeOf = (title: string) => page.getByRole('separator', { name: `Width of ${title}` })
/** The number of rows and the first name. */
const shown = async (): Promise<readonly [rows: string | null, first: string]> => [
  await page.getByRole('table').getAttribute('aria-rowcount'),
  await page.locator('tr[data-row] a.strong').first().innerText(),
]

describe('a table of the console', () => {
  it('a table of the console draws only the visible rows, with the indexes and count for screen readers', async () => {
    await go(page, service, '/vms')
    await page.getByText(`${count} VMs`).waitFor()
    assert.equal(await page.getByRole('table').getAttribute('aria-rowcount'), String(count + 1))
    const drawn = await page.locator('tr[data-row]').count()
    assert.ok(drawn > 15 && drawn < 80, String(drawn))
    await eventually(async () => {
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
      assert.equal(await page.getByRole('row', { name: /vm-1999 / }).getAttribute('aria-rowindex'), String(count + 1))
    })
    // The titles stay visible.
    assert.ok(((await header('Name').boundingBox())?.y ?? -1) >= 0)
    await assertAccessible(page, 'a long table at its end')
  })

  it('a scrolled table of the console has its rows in order, and no button acts on another row', async () => {
    await go(page, service, '/vms')
    await page.getByText(`${count} VMs`).waitFor()
    const order = `[...document.querySelectorAll('tr[data-row]')].map((row) => Number(row.getAttribute('aria-rowindex')))`
    const isSorted = (rows: readonly number[]): boolean =>
      rows.every((row, at) => at === 0 || row > (rows[at - 1] ?? 0))
    const scrollOn = `new Promise((done) => {
      let left = 10
      const next = () => (left-- === 0 ? done() : (scrollBy(0, 160), requestAnimationFrame(next)))
      next()
    })`
    const menu = page.getByRole('button', { name: /^Actions for / }).first()
    const label = await menu.getAttribute('aria-label')
    await menu.focus()
    await page.evaluate('void (window.held = document.activeElement)')
    const held = () => page.evaluate('held.isConnected ? held.ariaLabel : null')
    assert.equal(await held(), label)
    // When its row scrolls out, the button is removed instead of being reused for another VM.
    await page.evaluate(scrollOn)
    assert.ok([label, null].includes((await held()) as string | null))
    await page.evaluate(scrollOn)
    assert.equal(await held(), null)
    await eventually(async () => {
      const rows = (await page.evaluate(order)) as readonly number[]
      assert.ok(rows.length > 15 && (rows[0] ?? 0) > 20 && isSorted(rows), String(rows))
    })
  })

  it('a table of the console cuts other columns before the name', async () => {
    await page.setViewportSize({ width: 1_366, height: 768 })
    await go(page, service, '/vms')
    const name = page.getByRole('link', { name: longName })
    const isCut = (element: { scrollWidth: number; clientWidth: number }) => element.scrollWidth > element.clientWidth
    const owner = page.locator('td', { hasText: 'department.acme.dev' }).first()
    await eventually(async () => assert.equal(await owner.evaluate(isCut as never), true))
    assert.equal(await name.locator('..').evaluate(isCut as never), false)
    await assertFits(page, 'a table with a long name')
    await page.setViewportSize({ width: 1_440, height: 900 })
  })

  it('a table of the console never cuts the state and progress of a push job', async () => {
    const at = new Date().toISOString()
    const progress = { bytesTotal: 41_838_182, bytesDone: 41_838_182, bytesSkipped: 41_838_182, percent: 100 }
    const job = {
      name: 'push',
      namespace: 'svc-default',
      vm: 'vm-1',
      vmUid: 'uid',
      capture: 'id',
      owner: owners[1] ?? '',
    }
    await service.services.collections.pushJobs.create(job.namespace, job.name, {
      ...job,
      ...{ image: '127.0.0.1:15077/team/tools:v1', digest: `sha256:${'a'.repeat(64)}` },
      ...{ status: 'Succeeded', progress, startedAt: at, finishedAt: at },
    })
    for (const width of [1_440, 1_024, 390]) {
      await page.setViewportSize({ width, height: 900 })
      await go(page, service, '/pushes')
      await page.getByText('Succeeded').waitFor()
      await page.evaluate('document.fonts.ready.then(() => undefined)')
      const cut = `[...document.querySelectorAll('td.short')].filter((cell) => cell.scrollWidth > cell.clientWidth).length`
      await eventually(async () => assert.equal(await page.evaluate(cut), 0, `${width} px wide`))
    }
    await page.setViewportSize({ width: 1_440, height: 900 })
    await page.getByText('39.9 MiB already in the registry').waitFor()
  })

  it('a table of the console has columns that keys and pointers resize, and keeps the widths', async () => {
    await go(page, service, '/vms')
    await page.getByText(`${count} VMs`, { exact: true }).waitFor()
    await page.evaluate('document.fonts.ready.then(() => undefined)')
    const [before, owner] = [await widthOf('Image'), await widthOf('Owner')]
    await edgeOf('Image').focus()
    for (let press = 0; press < 4; press++) await page.keyboard.press('ArrowRight')
    await eventually(async () => assert.equal(await widthOf('Image'), before + 64))
    const box = await edgeOf('Owner').boundingBox()
    assert.ok(box)
    await page.mouse.move(box.x + 4, box.y + 10)
    await page.mouse.down()
    await page.mouse.move(box.x + 4 - 40, box.y + 10, { steps: 4 })
    await page.mouse.up()
    const narrower = await widthOf('Owner')
    assert.ok(narrower < owner, `${narrower} of ${owner}`)
    await page.reload()
    await eventually(async () =>
      assert.deepEqual([await widthOf('Image'), await widthOf('Owner')], [before + 64, narrower]),
    )
    await edgeOf('Image').focus()
    await page.keyboard.press('Delete')
    await eventually(async () => assert.ok((await widthOf('Image')) < before + 64))
  })

  it('a table of the console has columns to choose, and keeps the choice', async () => {
    await go(page, service, '/vms')
    await page.getByRole('button', { name: 'Columns' }).click()
    const dialog = page.getByRole('dialog', { name: 'Columns' })
    await dialog.getByRole('checkbox', { name: 'Owner' }).uncheck()
    await assertAccessible(page, 'the choice of columns')
    await dialog.getByRole('button', { name: 'Done' }).click()
    assert.equal(await header('Owner').count(), 0)
    await page.reload()
    await header('Name').waitFor()
    assert.equal(await header('Owner').count(), 0)
    await page.getByRole('button', { name: 'Columns' }).click()
    await dialog.getByRole('button', { name: 'Reset columns' }).click()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await header('Owner').waitFor()
    assert.equal(await dialog.count(), 0)
  })

  it('a table of the console keeps its order, filters and search in the URL and the browser history', async () => {
    await go(page, service, '/vms')
    await page.getByText(`${count} VMs`).waitFor()
    await header('Name').getByRole('button').focus()
    await page.keyboard.press('Enter')
    await page.waitForURL(/\?sort=-name$/)
    await pick(page, 'Power', 'Stopped')
    await page.getByText(`20 of ${count} VMs`).waitFor()
    await page.getByRole('searchbox').fill('vm-1')
    await page.getByText(`11 of ${count} VMs`).waitFor()
    await page.waitForURL(/search=vm-1/)
    const [url, seen] = [page.url(), await shown()]
    assert.deepEqual(seen, ['12', 'vm-1900'])

    const other = await opened.context.newPage()
    await other.goto(url)
    await other.getByText(`11 of ${count} VMs`).waitFor()
    assert.equal(await other.locator('tr[data-row] a.strong').first().innerText(), 'vm-1900')
    assert.equal(await other.getByRole('searchbox').inputValue(), 'vm-1')
    await other.close()

    await page.getByRole('link', { name: 'Nodes', exact: true }).click()
    await page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
    await page.goBack()
    await eventually(async () => assert.deepEqual(await shown(), seen))
    await page.goBack()
    await page.getByText(`${count} VMs`, { exact: true }).waitFor()
    assert.match(page.url(), /\?sort=-name$/)
    assert.equal(await page.getByRole('searchbox').inputValue(), '')
    await page.goForward()
    await eventually(async () => assert.deepEqual(await shown(), seen))
    await page.getByRole('searchbox').fill('nothing has this')
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByText(`${count} VMs`, { exact: true }).waitFor()
    assert.match(page.url(), /\?sort=-name$/)
  })

  it('a table of the console shows placeholders until its rows have loaded', async () => {
    const late = await opened.context.newPage()
    const released = Promise.withResolvers<void>()
    await late.routeWebSocket(/\/api\/v1\/watch$/, (socket) => {
      const server = socket.connectToServer()
      server.onMessage((message) => void released.promise.then(() => socket.send(message)))
    })
    for (const [place, title, hint] of [
      ['/vms', 'VMs', 'No VMs yet'],
      ['/nodes', 'Nodes', 'No nodes yet'],
      ['/images', 'Images', 'No images yet'],
      ['/pools', 'Pools', 'No pools yet'],
      ['/events', 'Events', 'No events yet'],
    ] as const) {
      await late.goto(`${service.apiUrl}/console${place}`)
      await late.getByRole('heading', { name: title, level: 1 }).waitFor()
      await late.locator('.skeleton-rows').waitFor()
      assert.equal(await late.getByText(hint).count(), 0, place)
      assert.doesNotMatch(await late.locator('main').innerText(), /\b0\b|No matches/, place)
    }
    await assertAccessible(late, 'a table before its rows')
    released.resolve()
    await late.locator('.skeleton-rows').waitFor({ state: 'detached' })
    await late.close()
    assert.deepEqual(opened.complaints, [])
  })
})
