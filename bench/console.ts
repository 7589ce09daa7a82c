// The console in a real Chromium on a real server: how soon it is shown, how soon a change is on the screen, what a
// frame costs while ten thousand VMs scroll or change.
import fs from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { type DevServer, makeFolder, startDev } from '../test/support/processes/dev-server.ts'
import { go, openConsole } from '../test/support/rigs/console.ts'
import { launchBrowser } from '../test/support/rigs/login.ts'
import { manyVm, serveManyVms } from '../test/support/rigs/many-vms.ts'
import { frameCosts } from '../test/support/tools/main-thread.ts'
import { msOf, sized } from './measure.ts'
import { type BenchRow, limited, median } from './row.ts'

const rounds = sized(9, 2)
const vmCount = sized(10_000, 500)
const frameCount = sized(300, 30)
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
    ...(await frames(browser, server)),
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

/** Half of the time of a frame at 60 frames a second. */
const frameMs = 8

/** By the processor time of the page's main thread: that of the busiest frames of a hundred but five. */
async function frames(browser: Browser, server: DevServer): Promise<BenchRow[]> {
  await using opened = await openConsole(browser, server, server.token)
  const { page } = opened
  const { change } = await serveManyVms(page, vmCount)
  await go(page, server, '/vms')
  await page.getByText(`${vmCount} VMs`).waitFor()
  // From the top downwards, as far in each frame as a wheel that is turned quickly.
  const scrolled = await frameCosts(browser, page, { count: frameCount, work: 'scrollBy(0, 160)' })
  const changing = async (): Promise<void> => {
    for (let round = 0; round < frameCount / 3; round++) {
      change([manyVm((round * 37) % vmCount, { powerState: round % 2 === 0 ? 'stopped' : 'running' })])
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    }
  }
  const changed = await frameCosts(browser, page, { count: frameCount, meanwhile: changing })
  return [
    limited('Main thread for a frame while 10,000 VMs scroll, p95', 'ms', scrolled.p95, frameMs),
    limited('Main thread for a frame while one of 10,000 VMs changes, p95', 'ms', changed.p95, frameMs),
  ]
}
