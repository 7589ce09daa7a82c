// The log lets through what is on its list and nothing else.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLog } from './log.ts'

describe('log', () => {
  const lines: string[] = []
  const log = createLog('info', (line) => lines.push(line))

  it('the log drops fields that are not on the list, and objects wherever they stand', () => {
    const sneaky = { name: 'x', password: 'canary', status: { token: 'canary' } } as unknown as { name: string }
    log.info('hello', sneaky)
    const line = JSON.parse(lines.at(-1) ?? '')
    assert.equal(line.name, 'x')
    assert.equal(line.message, 'hello')
    assert.ok(!lines.at(-1)?.includes('canary'))
  })

  it('the log cuts long texts and honours the level', () => {
    log.warn('long', { problem: 'x'.repeat(10_000) })
    assert.equal(JSON.parse(lines.at(-1) ?? '').problem.length, 4_000)
    const { length } = lines
    log.debug('quiet')
    assert.equal(lines.length, length)
  })

  it('the log shows an error with its stack, and of anything else thrown only its type', () => {
    log.error('bad', { name: 'y' }, new Error('why'))
    assert.match(lines.at(-1) ?? '', /"problem":"why".*"stack":/)
    log.error('bad', {}, { token: 'canary' })
    assert.ok(!lines.at(-1)?.includes('canary'))
  })
})
