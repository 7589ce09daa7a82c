// Checks that the agent repeats, and what a doctor in another session makes of them.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, it } from 'node:test'
import type { HostCheck } from '../../api/nodes/node-report.ts'
import { type Check, ok, problem } from './doctor.ts'
import { asAgentSaw, createHostChecks } from './host-checks.ts'

let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-host-checks-'))
})
after(() => fs.rm(folder, { recursive: true }))

const minute = 60_000

it('checks of a host run every five minutes, and a report waits only for the first ones', async () => {
  let nowMs = 0
  const runs: PromiseWithResolvers<void>[] = []
  const check: Check = {
    check: 'login session',
    async look() {
      const run = Promise.withResolvers<void>()
      runs.push(run)
      const count = runs.length
      await run.promise
      return ok(`run ${count}`)
    },
  }
  const results = createHostChecks([check], folder, () => nowMs)
  const first = results()
  assert.equal(results(), first)
  runs[0]?.resolve()
  assert.deepEqual(await first, [{ check: 'login session', result: 'ok', found: 'run 1' }])
  nowMs = 4 * minute
  assert.equal((await results())[0]?.found, 'run 1')
  nowMs = 5 * minute
  assert.equal((await results())[0]?.found, 'run 1', 'the old results, while the checks run')
  assert.equal(runs.length, 2)
  runs[1]?.resolve()
  while ((await results())[0]?.found !== 'run 2') await new Promise(setImmediate)
  assert.equal(runs.length, 2)
})

it('results of checks are shortened to what a server accepts, and a failed check is a problem', async () => {
  const long: Check = { check: 'long', look: async () => problem('f'.repeat(9_999), 'a'.repeat(9_999)) }
  const failing: Check = {
    check: 'failing',
    look: async () => {
      throw new Error('tool failed')
    },
  }
  const found = await createHostChecks([long, failing], folder)()
  assert.deepEqual([found[0]?.found.length, found[0]?.advice?.length], [512, 512])
  assert.deepEqual(found[1], { check: 'failing', result: 'problem', found: 'check failed', advice: 'tool failed' })
})

it('the doctor shows what a running agent saw where its own session sees something else', async () => {
  const own = path.join(folder, 'own')
  await fs.mkdir(own)
  const locked: Check = { check: 'login session', look: async () => problem('keychain locked', 'log in') }
  const here: readonly HostCheck[] = [
    { check: 'login session', result: 'ok', found: 'admin at the screen' },
    { check: 'sleep', result: 'ok', found: 'never' },
  ]
  assert.deepEqual(await asAgentSaw(here, own, 0), here, 'no agent has run')
  await createHostChecks([locked, { check: 'sleep', look: async () => ok('never') }], own, () => minute)()
  const [session, sleep] = await asAgentSaw(here, own, 3 * minute)
  assert.deepEqual(session, {
    check: 'login session',
    result: 'problem',
    found: 'keychain locked. Seen by the agent 2 min ago; from here: admin at the screen',
    advice: 'log in',
  })
  assert.deepEqual(sleep, here[1])
  assert.deepEqual(await asAgentSaw(here, own, 17 * minute), here, 'the agent no longer runs')
})
