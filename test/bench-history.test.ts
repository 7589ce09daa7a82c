// What a run of the benchmarks says about the landing before.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type BenchHistory, readHistory, regression } from '../bench/history.ts'
import { compared, limited } from '../bench/row.ts'

it('a benchmark that is worse by more than a fifth than in the last landing that has it is named', async () => {
  const pull = { what: 'Pull', reference: 'skopeo', unit: 'MiB/s', atLeast: 0.75 }
  const history: BenchHistory = [
    { version: '1', date: '2026-11-16', ratios: { 'registry: Pull / skopeo': 0.9, 'cli: list / the limit': 0.5 } },
    { version: '2', date: '2026-11-17', ratios: { 'cli: list / the limit': 0.6 } },
  ]
  assert.equal(
    regression(history, 'registry', compared(pull, [74], [100])),
    'registry: Pull / skopeo: 0.9 in 1, 0.74 now',
  )
  assert.equal(regression(history, 'registry', compared(pull, [76], [100])), undefined)
  assert.equal(regression(history, 'registry', compared(pull, [200], [100])), undefined)
  assert.equal(regression(history, 'cli', limited('list', 'ms', 73, 100)), 'cli: list / the limit: 0.6 in 2, 0.73 now')
  assert.equal(regression(history, 'cli', limited('list', 'ms', 10, 100)), undefined)
  assert.equal(regression(history, 'cli', limited('new', 'ms', 99, 100)), undefined)
  assert.ok((await readHistory()).every(({ ratios }) => Object.values(ratios).every(Number.isFinite)))
})
