// Steps are taken back in reverse, all of them, unless there is no way back.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createUndo } from './undo.ts'

describe('undo', () => {
  it('undo undoes the last step first, and continues if one fails', async () => {
    const undo = createUndo()
    const done: string[] = []
    const broken = new Error('stuck')
    undo.push(async () => void done.push('first'))
    undo.push(() => Promise.reject(broken))
    undo.push(async () => void done.push('last'))
    assert.deepEqual(await undo.run(), [broken])
    assert.deepEqual(done, ['last', 'first'])
    assert.deepEqual(await undo.run(), [])
    assert.equal(done.length, 2)
  })

  it('undo takes nothing back after the point of no return', async () => {
    const undo = createUndo()
    undo.push(() => Promise.reject(new Error('must not be called')))
    undo.clear()
    assert.deepEqual(await undo.run(), [])
  })
})
