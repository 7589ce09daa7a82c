// Fail points end a process where a test says so, and never otherwise.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'

const first = `import { failpoint } from ${JSON.stringify(new URL('failpoint.ts', import.meta.url).href)}`
const code = `${first}
failpoint('other'); failpoint('here'); process.exit(7)`

const cases: readonly { env: Record<string, string>; ends: 'SIGKILL' | number }[] = [
  { env: { SVC3_TEST: '1', SVC3_FAILPOINT: 'here' }, ends: 'SIGKILL' },
  { env: { NODE_ENV: 'test', SVC3_FAILPOINT: 'here:exit' }, ends: 1 },
  { env: { SVC3_TEST: '1', SVC3_FAILPOINT: 'nowhere' }, ends: 7 },
  { env: { SVC3_FAILPOINT: 'here' }, ends: 7 },
]

describe('failpoint', () => {
  for (const { env, ends } of cases)
    it(`a fail point by ${JSON.stringify(env)} ends with ${ends}`, () => {
      const { status, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { env })
      assert.equal(signal ?? status, ends)
    })

  it('a fail point ends the process at the point that a file names', () => {
    const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-failpoint-')), 'named')
    const env = { SVC3_TEST: '1', SVC3_FAILPOINT: `@${file}` }
    const write = `failpoint('here'); (await import('node:fs')).writeFileSync(${JSON.stringify(file)}, 'here'); failpoint('here')`
    const { signal } = spawnSync(process.execPath, ['--input-type=module', '-e', `${first}; ${write}`], { env })
    assert.equal(signal, 'SIGKILL')
    fs.rmSync(path.dirname(file), { recursive: true })
  })
})
