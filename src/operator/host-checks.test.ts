// Checks that an operator ignores, because they are wrong on this host.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { ignorable } from './host-checks.ts'

it('a check that prevents macOS VMs becomes a warning if agent.json ignores it, and others stay problems', async (t) => {
  const dataDir = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-host-checks-'))
  t.after(() => fs.rm(dataDir, { recursive: true }))
  const configFile = path.join(dataDir, 'agent.json')
  const problem = { result: 'problem', found: 'nobody at the screen', advice: 'Log in' } as const
  const look = async (check: string, preventsMacos = true) =>
    ignorable({ dataDir, imageDir: dataDir, driver: 'apple', network: undefined, configFile })({
      check,
      look: async () => ({ ...problem, ...(preventsMacos && { preventsMacos }) }),
    }).look(AbortSignal.timeout(5_000))
  await fs.writeFile(configFile, '{"ignoredChecks":["login session"]}', { mode: 0o600 })
  assert.deepEqual(await look('login session'), { ...problem, result: 'warning' })
  assert.deepEqual(await look('virtualisation'), { ...problem, preventsMacos: true })
  assert.deepEqual(await look('login session', false), problem)
})
