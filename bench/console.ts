// The console in a real Chromium on a real server: how soon it is shown, how soon a change is on the screen, how smoothly ten
// thousand VMs scroll.
import fs from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { type DevServer, makeFolder, startDev } from '../test/support/processes/dev-server.ts'
import { go, openConsole } from '../test/support/rigs/console.ts'
import { launchBrowser } from '../test/support/rigs/login.ts'
import { serveManyVms } from '../test/support/rigs/many-vms.ts'
import { inTurns, msOf, sized } from './measure.ts'
import { type BenchRow, compared, limited, median } from './row.ts'

const rounds = sized(9, 2)
const vmCount = sized(10_000, 500)
const scrollMs = sized(3_000, 200)
const limitMs = 1_000
const node = 'sim-amd64-1'

export async function bench(): Promise<BenchRow[]> {
  const data = await makeFolder()
  await using _removal = { [Symbol.asyncDispose]: () => fs.rm(data, { recursive: true, force: true }) }
  await using server = await startDev(data, { args: ['--driver', 'simulated', '--nodes', 'amd64=2'] })
  await using browser = await launchBrowser()
  // Logged in once; those after it have the cookie, and nothing in their caches.
  await (await openConsole(browser, server, server.token))[Symbol.asyncDispose]()
  return [
    limited('Console opened until its overview is shown, nothing cached', 'ms', await shown(browser, server), limitMs),
    limited('A change in the cluster until it is on the screen', 'ms', await changed(browser, server), limitMs),
    await frames(browser, server),
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
    const change = async (): Promise<void> => {
      await server.call('POST', `/api/v1/namespaces/svc-default/nodes/${node}/${verb}`)
      await row.getByText(word, { exact: true }).waitFor()
    }
    times.push(await msOf(change))
  }
  return median(times)
}

/** From the top downwards, as far in each frame as a wheel that is turned quickly. */
const scrolling = `new Promise((resolve) => {
  const startMs = performance.now()
  let frames = 0
  scrollTo(0, 0)
  const next = (nowMs) => {
    if (nowMs - startMs > ${scrollMs}) return resolve((frames * 1000) / (nowMs - startMs))
    frames++
    scrollBy(0, 120)
    requestAnimationFrame(next)
  }
  requestAnimationFrame(next)
})`
async function framesOf(page: Page): Promise<number> {
  await page.bringToFront()
  return Number(await page.evaluate(scrolling))
}

async function frames(browser: Browser, server: DevServer): Promise<BenchRow> {
  await using opened = await openConsole(browser, server, server.token)
  const { page, context } = opened
  await serveManyVms(page, vmCount)
  await go(page, server, '/vms')
  await page.getByText(`${vmCount} VMs`).waitFor()
  const bare = await context.newPage()
  await bare.setContent('<div style="height: 400000px">nothing</div>')
  const figures = await inTurns(
    { rounds: sized(3, 1) },
    () => framesOf(page),
    () => framesOf(bare),
  )
  const what = 'Frames a second while 10,000 VMs scroll'
  return compared({ what, reference: 'an empty page of that height', unit: '/s', atLeast: 0.8 }, ...figures)
}
