// The log lets through what is on its list and nothing else; on a terminal its lines are for people.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLog, logSparingly, readableLine } from './log.ts'

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

  it('the log has one line of a kind in ten seconds, and the next says how many were omitted', () => {
    const at = (nowMs: number, status: number, error?: Error): void =>
      logSparingly(
        log,
        error ? 'error' : 'warn',
        'request',
        { requestId: `r${nowMs}`, route: '/x', status },
        error,
        nowMs,
      )
    const from = lines.length
    const written = () => lines.slice(from).map((line) => JSON.parse(line))
    for (let nowMs = 0; nowMs < 10_000; nowMs += 10) at(nowMs, 404)
    at(9_000, 403)
    at(10_001, 404)
    at(30_000, 404)
    assert.deepEqual(
      written().map(({ requestId, status, omitted }) => [requestId, status, omitted]),
      [
        ['r0', 404, undefined],
        ['r9000', 403, undefined],
        ['r10001', 404, 999],
        ['r30000', 404, undefined],
      ],
    )
    const fault = (): Error => new Error('here')
    for (let count = 0; count < 3; count++) {
      at(40_000, 500, fault())
      at(40_000, 500, new TypeError('there'))
    }
    assert.deepEqual(
      written()
        .slice(4)
        .map(({ problem }) => problem),
      ['here', 'there'],
    )
  })

  it('the log has a limit for kinds of lines, so that a flood of very many kinds is few lines', () => {
    const from = lines.length
    const at = (nowMs: number, route: number): void =>
      logSparingly(log, 'warn', 'request', { route: `/flood/${route}`, status: 401 }, undefined, nowMs)
    for (let round = 0; round < 3; round++) for (let route = 0; route < 2_000; route++) at(50_000 + round, route)
    assert.ok(lines.length - from < 600, `${lines.length - from} lines`)
    at(70_000, 5_000)
    assert.match(lines.at(-1) ?? '', /flood\/5000/, 'later kinds have lines again')
    logSparingly(log, 'error', 'request', { route: '/flood/0', status: 500 }, undefined, 50_003)
    assert.match(lines.at(-1) ?? '', /"status":500/, 'errors are not hidden by warnings')
  })

  it('the log on a terminal has a request, a warning and an error as short lines, without control characters', () => {
    const readable = (): string => readableLine(lines.at(-1) ?? '')
    const request = { requestId: 'r', actor: 'admin', method: 'POST', status: 201, durationMs: 81.2, remote: '::1' }
    log.info('request', { ...request, route: '/api/v1/namespaces/:namespace/vms', namespace: 'svc-ios' })
    assert.match(readable(), /^\d\d:\d\d:\d\d POST \/api\/v1\/namespaces\/svc-ios\/vms 201 81\.2 ms\n$/)
    log.warn('request', { ...request, status: 404, route: '/x', omitted: 7 })
    assert.match(readable(), /POST \/x 404 81\.2 ms, and 7 like it before\n$/)
    log.info('stopping', { signal: 'SIGINT' })
    assert.match(readable(), /^\d\d:\d\d:\d\d stopping signal=SIGINT\n$/)
    log.warn('lease lost', { node: 'mac-1', problem: 'no answer\u001b[2J' })
    assert.match(readable(), /^\d\d:\d\d:\d\d warn {2}lease lost problem="no answer\\u001b\[2J" node=mac-1\n$/)
    log.warn('lease \u001b[2J lost', { name: 'a\u009bb' })
    assert.match(readable(), /^\S+ warn {2}lease \?\[2J lost name=a\?b\n$/)
    log.error('bad', {}, new Error('why'))
    assert.match(readable(), /^\S+ error bad problem=why\n {2}Error: why\n {6}at /)
  })
})
