// Every benchmark still works: a run of seconds each, whose figures nobody judges.
import assert from 'node:assert/strict'
import path from 'node:path'
import { it } from 'node:test'
import { benches } from '../scripts/bench.ts'
import { exec } from '../src/platform/exec.ts'

const script = path.resolve(import.meta.dirname, '../scripts/bench.ts')

for (const name of Object.keys(benches))
  it(`npm run bench -- ${name} --smoke runs to its end and prints its rows`, async () => {
    const { stdout } = await exec(process.execPath, [script, name, '--smoke'], { timeoutMs: 300_000 })
    assert.match(
      stdout,
      new RegExp(String.raw`^\| ${name} \| .+ \| .+ \| [\d.,]+ \S+ \| [\d.,]+ \S+ \| [\d.]+ \| `, 'm'),
    )
  })
