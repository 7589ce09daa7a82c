// The cost of every write follows its body: each operation, kind and call of 2.4.x, in each content type, takes bodies of 1 MiB in
// every hostile shape in less than 100 ms of the main thread, and twice the body in about twice the time.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startWriteRig, type WriteRig, ways } from './support/tools/hostile-writes.ts'
import { answerProblemOf, problemOf } from './support/tools/write-costs.ts'

let rig: WriteRig
before(async () => {
  rig = await startWriteRig()
})
after(() => rig[Symbol.asyncDispose]())

describe('the cost of a write follows its body', () => {
  for (const way of ways)
    it(`${way.wire}: ${way.name}`, async () => {
      assert.ok(way.shapes.length > 0)
      assert.equal(await answerProblemOf(rig, way), undefined)
      const problems: string[] = []
      for (const shape of way.shapes) {
        const problem = await problemOf(rig, way, shape)
        if (problem) problems.push(`${shape.name}: ${problem}`)
      }
      assert.deepEqual(problems, [])
    })
})
