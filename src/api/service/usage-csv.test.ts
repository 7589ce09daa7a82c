// Escaping and columns of usage as CSV.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { usageCsv } from './usage-csv.ts'

it('usage as CSV has a header, quotes what needs it, and nothing that a spreadsheet would run', () => {
  const row = { day: '2026-11-17', namespace: 'svc-ios', vms: 2, vmHours: 1.5, coreHours: 6, queueSeconds: 0.25 }
  assert.equal(
    usageCsv([
      { ...row, owner: 'ada, "the" first' },
      { ...row, owner: '=cmd()' },
    ]),
    'day,namespace,owner,vms,vmHours,coreHours,queueSeconds\r\n' +
      '2026-11-17,svc-ios,"ada, ""the"" first",2,1.5,6,0.25\r\n' +
      "2026-11-17,svc-ios,'=cmd(),2,1.5,6,0.25\r\n",
  )
})
