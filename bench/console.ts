// The console in a real Chromium on a real server: how soon it is shown, how soon a change is on the screen, how smoothly ten
// thousand VMs scroll. The first two against what was promised (a second), the last against an empty page of that height.
import fs from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { type DevServer, makeFolder, startDev } from '../test/support/processes/dev-server.ts'
import { go, openConsole } from '../test/support/rigs/console.ts'
import { launchBrowser } from '../test/support/rigs/login.ts'
import { serveManyVms } from '../test/support/rigs/many-vms.ts'
import { type BenchRow, median, printRows } from './row.ts'

const rounds = 9
const promisedMs = 1_000
const node = 'sim-amd64-1'

export async function consoleBench(): Promise<BenchRow[]> {
  const data = await makeFolder()
  await using _removal = { [Symbol.asyncDispose]: () => fs.rm(data, { recursive: true, force: true }) }
  await using server = await startDev(data, { args: ['--driver', 'simulated', '--nodes', 'amd64=2'] })
  await using browser = await launchBrowser()
  // Logged in once; those after it have the cookie, and nothing in their caches.
  await (await openConsole(browser, server, server.token))[Symbol.asyncDispose]()
  const shownMs = await shown(browser, server)
  const changedMs = await changed(browser, server)
  const [ours, empty] = await frames(browser, server)
  const within = (name: string, ours: number): BenchRow => ({
    name,
    ours,
    reference: promisedMs,
    unit: 'ms',
    ratio: ours / promisedMs,
    target: 1,
    better: 'lower',
  })
  return [
    within('console: opened until its overview is shown, nothing cached', shownMs),
    within('console: a change in the cluster until it is on the screen', changedMs),
    {
      name: 'console: frames a second while 10,000 VMs scroll, against an empty page of that height',
      ours,
      reference: empty,
      unit: 'frames/s',
      ratio: ours / empty,
      target: 0.8,
      better: 'higher',
    },
  ]
}

async function shown(browser: Browser, server: DevServer): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const startMs = performance.now()
    await using opened = await openConsole(browser, server, server.token)
    await opened.page.getByText(node).first().waitFor()
    times.push(performance.now() - startMs)
  }
  return median(times)
}

async function changed(browser: Browser, server: DevServer): Promise<number> {
  await using opened = await openConsole(browser, server, server.token)
  const { page } = opened
  await go(page, server, '/nodes')
  const row = page.getByRole('row', { name: new RegExp(node) })
  await row.getByText('Ready', { exact: true }).waitFor()
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const [verb, word] = round % 2 === 0 ? ['cordon', 'Cordoned'] : ['uncordon', 'Ready']
    const startMs = performance.now()
    await server.call('POST', `/api/v1/namespaces/svc-default/nodes/${node}/${verb}`)
    await row.getByText(word, { exact: true }).waitFor()
    times.push(performance.now() - startMs)
  }
  return median(times)
}

/** Three seconds from the top downwards, as far in each frame as a wheel that is turned quickly. */
const scrolling = `new Promise((resolve) => {
  const startMs = performance.now()
  let frames = 0
  scrollTo(0, 0)
  const next = (nowMs) => {
    if (nowMs - startMs > 3000) return resolve((frames * 1000) / (nowMs - startMs))
    frames++
    scrollBy(0, 120)
    requestAnimationFrame(next)
  }
  requestAnimationFrame(next)
})`
const framesOf = async (page: Page): Promise<number> => Number(await page.evaluate(scrolling))

async function frames(browser: Browser, server: DevServer): Promise<[ours: number, empty: number]> {
  await using opened = await openConsole(browser, server, server.token)
  const { page, context } = opened
  await serveManyVms(page, 10_000)
  await go(page, server, '/vms')
  await page.getByText('10000 VMs').waitFor()
  const bare = await context.newPage()
  await bare.setContent('<div style="height: 400000px">nothing</div>')
  const ours: number[] = []
  const empty: number[] = []
  // In turns, because the load of a machine changes. An empty page needs little of it: measure on a quiet one.
  for (let round = 0; round < 3; round++) {
    await bare.bringToFront()
    empty.push(await framesOf(bare))
    await page.bringToFront()
    ours.push(await framesOf(page))
  }
  return [median(ours), median(empty)]
}

if (import.meta.main) {
  printRows(await consoleBench())
  // Chromium's helpers may outlive their work for a moment.
  process.exit()
}
