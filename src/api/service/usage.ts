// Usage of VMs by day, owner and namespace.
import * as t from 'typebox'
import { Continue, inNamespace, MadeListQuery, operationsOf } from '../operation.ts'

const Day = t.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'Day in UTC, such as `2026-11-17`' })

export const Usage = t.Object(
  {
    day: Day,
    namespace: t.String(),
    owner: t.String(),
    vms: t.Integer({ description: 'VMs that got a node on this day' }),
    vmHours: t.Number({ description: 'From placement to the end, including stopped VMs' }),
    coreHours: t.Number({ description: 'VM hours multiplied by cores' }),
    queueSeconds: t.Number({ description: 'Total time that VMs waited for a node, on the day when the wait ended' }),
  },
  { title: 'Usage' },
)
export type Usage = t.Static<typeof Usage>

const example = {
  day: '2026-11-17',
  namespace: 'svc-default',
  owner: 'ada@example.com',
  vms: 12,
  vmHours: 20.5,
  coreHours: 82,
  queueSeconds: 34.2,
}

const days = {
  from: t.Optional(t.String({ maxLength: 10, description: 'First day (default: 29 days ago)' })),
  to: t.Optional(t.String({ maxLength: 10, description: 'Last day (default: today)' })),
}

const operation = operationsOf({ noun: 'usage', method: 'GET', allow: 'dev', isDerived: true })

export const listUsage = operation({
  id: 'listUsage',
  path: `${inNamespace}/usage`,
  summary: 'List what VMs used, by day and owner',
  description:
    'Deleted VMs count; those that run count up to now. Kept for 400 days. Warm VMs of pools count once a VM has them.',
  query: t.Object({
    ...MadeListQuery.properties,
    ...days,
  }),
  madeOf: Usage,
  response: t.Object({ items: t.Array(Usage), continue: Continue }),
  example: { params: { namespace: 'svc-default' }, response: { items: [example] } },
})

export const getUsageCsv = operation({
  id: 'getUsageCsv',
  path: `${inNamespace}/usage/csv`,
  summary: 'Show what VMs used, by day and owner, as CSV',
  description: 'The same as the list, for spreadsheets: RFC 4180, with a line of names first.',
  query: t.Object(days),
  produces: 'text/csv; charset=utf-8',
  response: t.String(),
  example: {
    params: { namespace: 'svc-default' },
    response:
      'day,namespace,owner,vms,vmHours,coreHours,queueSeconds\r\n2026-11-17,svc-default,ada@example.com,12,20.5,82,34.2\r\n',
  },
})
