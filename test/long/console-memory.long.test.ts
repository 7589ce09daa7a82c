// An hour of a busy cluster on one open page: ten thousand VMs, of which many change all the time, and no memory is
// lost.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { describe, it } from 'node:test'
import { makeFolder, startDev } from '../support/processes/dev-server.ts'
import { go, openConsole } from '../support/rigs/console.ts'
import { launchBrowser } from '../support/rigs/login.ts'
import { manyVm, serveManyVms } from '../support/rigs/many-vms.ts'

describe('a console that stays open', () => {
  it('a console that stays open does not grow with what it has seen', { timeout: 175_000 }, async () => {
    const data = await makeFolder()
    // Declared first, so that it is removed last, after the server that writes there has ended.
    await using _removal = { [Symbol.asyncDispose]: () => fs.rm(data, { recursive: true, force: true }) }
    await using server = await startDev(data, { args: ['--driver', 'simulated', '--nodes', 'arm64=1'] })
    await using browser = await launchBrowser()
    await using opened = await openConsole(browser, server, server.token)
    const { page } = opened
    const { change } = await serveManyVms(page, 10_000)
    await go(page, server, '/vms')
    await page.getByText('10000 VMs').waitFor()
    const session = await page.context().newCDPSession(page)
    const heapBytes = async (): Promise<number> => {
      await session.send('HeapProfiler.collectGarbage')
      return (await session.send('Runtime.getHeapUsage')).usedSize
    }
    let round = 0
    const busy = async (rounds: number): Promise<void> => {
      for (const until = round + rounds; round < until; round++) {
        const state = round % 2 === 0 ? 'stopped' : 'running'
        change(Array.from({ length: 500 }, (_, index) => manyVm((round * 500 + index) % 10_000, { powerState: state })))
        const last = manyVm(0, { owner: `round-${round}@example.com` })
        change([last])
        await page.getByRole('cell', { name: last.owner }).waitFor()
      }
    }
    await busy(20)
    const beforeBytes = await heapBytes()
    // Forty thousand changes: an hour with eleven of them a second.
    await busy(80)
    const grownMiB = ((await heapBytes()) - beforeBytes) / 2 ** 20
    assert.ok(grownMiB < 8, `grown by ${grownMiB.toFixed(1)} MiB`)
  })
})
