// Every benchmark and the soak still work: a run of seconds each, whose figures are not judged.
import assert from 'node:assert/strict'
import path from 'node:path'
import { it } from 'node:test'
import { chartOf, linesOf, tableOf } from '../bench/soak/report.ts'
import { slopeOf } from '../bench/soak/samples.ts'
import { benches } from '../scripts/bench.ts'
import { soak } from '../scripts/soak.ts'
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

it('npm run soak: a short soak with a restart fails no call, leaves nothing over and draws its chart', async () => {
  const soaked = await soak({ minutes: 3, minuteMs: 3_000, nodes: 5, restartMinutes: 1, say: () => undefined })
  const lines = linesOf(soaked)
  const figureOf = (what: string) => lines.find((line) => line.what === what)?.value
  assert.deepEqual(soaked.failures, [])
  assert.equal(figureOf('Restarts of the other server'), 2)
  assert.equal(figureOf('Watches left over'), 0)
  assert.ok(Number(figureOf('Calls')) > 20, tableOf(lines))
  assert.equal(chartOf(soaked).match(/<polyline /g)?.length, 2)
})

it('the slope of a soak is that of its samples, whatever one of them says', () => {
  const points = Array.from({ length: 40 }, (_, minute) => [minute, 50 + minute * 0.1] as const)
  assert.ok(Math.abs(slopeOf(points) - 0.1) < 1e-9)
  assert.ok(Math.abs(slopeOf(points.with(20, [20, 500])) - 0.1) < 0.01)
})
