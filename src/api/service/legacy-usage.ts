// Callers of the 2.4.x API, so that an administrator sees when the gateway can be switched off.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'
import { Timestamp } from '../records.ts'

export const LegacyUsage = t.Object(
  {
    endpoint: t.String({ description: 'Method and path as docs/reference/orka-2.4.md has them' }),
    subject: t.String({ description: 'User of the token; `anonymous` without one' }),
    client: t.String({ description: 'User-Agent of the client' }),
    calls: t.Integer(),
    refused: t.Integer({ description: 'Refused calls' }),
    firstAt: Timestamp,
    lastAt: Timestamp,
  },
  { title: 'LegacyUsage' },
)
export type LegacyUsage = t.Static<typeof LegacyUsage>

const example = {
  endpoint: 'POST /resources/vm/deploy',
  subject: 'serviceaccount:svc-default:jenkins',
  client: 'Java/11.0.2',
  calls: 412,
  refused: 3,
  firstAt: '2026-11-15T09:00:00Z',
  lastAt: '2026-11-15T10:30:00Z',
}

export const getLegacyUsage = operation({
  id: 'getLegacyUsage',
  noun: 'legacy-usage',
  method: 'GET',
  path: `${base}/legacy/usage`,
  allow: 'admin',
  summary: 'Show the callers of the 2.4.x API',
  description: 'Calls older than 180 days are dropped. `enabled`: whether the gateway is on.',
  isDerived: true,
  response: t.Object({ enabled: t.Boolean(), items: t.Array(LegacyUsage) }, { title: 'LegacyUsageReport' }),
  example: { response: { enabled: true, items: [example] } },
})
