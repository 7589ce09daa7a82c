// Reports: not too often, one at a time, and the newest always, also when nothing comes after it.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createReporter } from './reporter.ts'

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

it('a reporter sends the first value immediately, and then the latest one', async () => {
  const sent: number[] = []
  await using reporter = createReporter(async (value: number) => void sent.push(value), { everyMs: 50 })
  for (const value of [1, 2, 3]) reporter.report(value)
  assert.deepEqual(sent, [1])
  await wait(150)
  assert.deepEqual(sent, [1, 3])
})

it('a reporter sends a pending value at its end, drops it when disposed, and sends nothing afterwards', async () => {
  const sent: string[] = []
  const open = () => createReporter(async (value: string) => void sent.push(value), { everyMs: 30 })
  const ended = open()
  for (const value of ['a', 'b']) ended.report(value)
  await ended.end()
  const disposed = open()
  for (const value of ['c', 'd']) disposed.report(value)
  await disposed[Symbol.asyncDispose]()
  ended.report('e')
  disposed.report('f')
  await wait(80)
  assert.deepEqual(sent, ['a', 'b', 'c'])
})

it('a patient reporter sends nothing for short work, and reports failures', async () => {
  const failures: unknown[] = []
  const fails = async () => assert.fail('no')
  {
    await using reporter = createReporter(fails, { isPatient: true, everyMs: 1_000 })
    reporter.report(undefined)
  }
  await using reporter = createReporter(fails, { everyMs: 10, failed: (error) => failures.push(error) })
  reporter.report(undefined)
  await wait(50)
  reporter.report(undefined)
  await wait(50)
  assert.equal(failures.length, 2)
})
