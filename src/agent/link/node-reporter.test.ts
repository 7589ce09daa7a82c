// An unchanged node sends a short call instead of a report.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { NodeReport } from '../../api/nodes/node-report.ts'
import { createNodeReporter } from './node-reporter.ts'

it('a whole report is sent when it changed, and when the server requests it', async () => {
  const calls: string[] = []
  let wantsReport = false
  const call = async ({ id }: { id: string }) => {
    calls.push(id)
    return id === 'noteAgent' ? { wantsReport } : { name: 'n', namespace: 'svc-default' }
  }
  const reporter = createNodeReporter({ call: call as never })
  const signal = new AbortController().signal
  const report = { diskFreeGb: 1 } as NodeReport
  const callsOf = async (body: NodeReport): Promise<string[]> => {
    calls.length = 0
    await reporter.report(body, signal)
    return [...calls]
  }
  assert.deepEqual(await callsOf(report), ['reportNode'])
  assert.deepEqual(await callsOf(report), ['noteAgent'])
  assert.deepEqual(await callsOf({ ...report, diskFreeGb: 9 }), ['reportNode'])
  wantsReport = true
  assert.deepEqual(await callsOf({ ...report, diskFreeGb: 9 }), ['noteAgent', 'reportNode'])
  reporter.forget()
  assert.deepEqual(await callsOf({ ...report, diskFreeGb: 9 }), ['reportNode'])
})
