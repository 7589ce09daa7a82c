// The queue of a namespace: VMs that wait for a node or for the quota, in the order in which they will be placed.
import * as t from 'typebox'
import { Continue, inNamespace, MadeListQuery, operation } from '../operation.ts'
import { Timestamp } from '../records.ts'

export const QueuedVm = t.Object(
  {
    position: t.Integer({ description: '1: next' }),
    name: t.String(),
    namespace: t.String(),
    owner: t.String(),
    priority: t.Integer(),
    cpu: t.Integer(),
    memory: t.String({ description: 'Memory, such as `4.80Gi`; `auto` until placed' }),
    share: t.Number({ description: 'Share of its owner; the lowest share goes first' }),
    reason: t.String({ description: 'In one word, such as `OverQuota` or `NoNodeFits`' }),
    message: t.String({ description: 'Why it waits' }),
    waitingSince: Timestamp,
    expectedWaitSeconds: t.Optional(
      t.Integer({ description: 'By how often VMs ended in the last hour; missing if too few did' }),
    ),
  },
  { title: 'QueuedVm' },
)
export type QueuedVm = t.Static<typeof QueuedVm>

export const listQueue = operation({
  id: 'listQueue',
  noun: 'queue',
  method: 'GET',
  path: `${inNamespace}/queue`,
  allow: 'dev',
  summary: 'List the VMs that wait for a node or for the quota',
  description:
    'In the order in which they get a node: the owner with the lowest share first, then by priority among the VMs of ' +
    'one owner, then by age.',
  isDerived: true,
  query: MadeListQuery,
  madeOf: QueuedVm,
  response: t.Object({ items: t.Array(QueuedVm), continue: Continue }),
  example: {
    params: { namespace: 'svc-default' },
    response: {
      items: [
        {
          position: 1,
          name: 'vm-cznfv',
          namespace: 'svc-default',
          owner: 'ada@example.com',
          priority: 0,
          cpu: 4,
          memory: '8.00Gi',
          share: 0.05,
          reason: 'OverQuota',
          message: 'Quota of svc-default reached: 20 of 20 VMs in use',
          waitingSince: '2026-11-15T09:00:00Z',
          expectedWaitSeconds: 120,
        },
      ],
    },
  },
})
