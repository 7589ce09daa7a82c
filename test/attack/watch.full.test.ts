// The watcher notices each kind of excess, and nothing in a program that rests.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { endService } from '../support/processes/leftovers.ts'
import { broken, usualLimits, Watch } from './watch.ts'

it('the watcher notices time, memory, descriptors, disk space and log of a program, each by itself', async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-attack-'))
  const program = path.join(import.meta.dirname, 'spendthrift.ts')
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  endService(child)
  const [line] = await once(child.stdout, 'data')
  const url = String(line).trim()
  let logged = ''
  child.stdout.on('data', (chunk: Buffer) => {
    logged += chunk
  })
  await using watch = new Watch({ pid: child.pid ?? 0, pingUrl: `${url}/`, folder, output: () => logged })
  await watch.period()
  const seen: Record<string, string[]> = {}
  for (const what of ['', 'time', 'memory', 'descriptors', 'disk', 'log']) {
    // The event loop is held for a short time by what the program does for each.
    await (await fetch(`${url}/${what}`)).text()
    await sleep(200)
    const cost = await watch.period()
    seen[what] = broken({ ...cost, heldMs: what === 'time' || what === '' ? cost.heldMs : 0 }, usualLimits).map(
      (text) => text.replace(/\d.*/, '').trim(),
    )
  }
  child.kill('SIGKILL')
  await fs.rm(folder, { recursive: true })
  const named = { time: 'the event loop held for', memory: 'memory +', descriptors: 'descriptors +', disk: 'disk +', log: 'log +' } // biome-ignore format: a table
  assert.deepEqual(seen, { '': [], ...Object.fromEntries(Object.entries(named).map(([what, text]) => [what, [text]])) })
})
