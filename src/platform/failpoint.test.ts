// Fail points end a process where a test says so, and never otherwise.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'

const code = `import { failpoint } from ${JSON.stringify(new URL('failpoint.ts', import.meta.url).href)}
failpoint('other'); failpoint('here'); process.exit(7)`

const cases: readonly { env: Record<string, string>; ends: 'SIGKILL' | number }[] = [
  { env: { SVC3_TEST: '1', SVC3_FAILPOINT: 'here' }, ends: 'SIGKILL' },
  { env: { NODE_ENV: 'test', SVC3_FAILPOINT: 'here:exit' }, ends: 1 },
  { env: { SVC3_TEST: '1', SVC3_FAILPOINT: 'nowhere' }, ends: 7 },
  { env: { SVC3_FAILPOINT: 'here' }, ends: 7 },
]

describe('failpoint', () => {
  for (const { env, ends } of cases)
    it(`${JSON.stringify(env)} ends with ${ends}`, () => {
      const { status, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { env })
      assert.equal(signal ?? status, ends)
    })
})
