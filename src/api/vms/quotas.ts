// Quotas: the limits for the VMs of a namespace, their current use, and the weights of their owners.
import * as t from 'typebox'
import { inNamespace, operationsOf } from '../operation.ts'
import { Timestamp } from '../records.ts'

const limitFields = (bounds: t.TNumberOptions = {}) => ({
  vms: t.Optional(t.Integer({ ...bounds, description: 'VMs' })),
  cpu: t.Optional(t.Integer({ ...bounds, description: 'Cores' })),
  memory: t.Optional(t.Number({ ...bounds, description: 'Memory in GiB' })),
  macos: t.Optional(t.Integer({ ...bounds, description: 'macOS VMs' })),
})

const QuotaLimits = t.Object(
  {
    ...limitFields(),
    records: t.Integer({ description: 'Records of each kind' }),
    recordSize: t.Number({ description: 'Size of all records of a kind together, in MiB' }),
  },
  { title: 'QuotaLimits', description: 'A missing field is not limited' },
)
export type QuotaLimits = t.Static<typeof QuotaLimits>

const StoredRecords = t.Object(
  { kind: t.String(), records: t.Integer(), size: t.Number({ description: 'MiB' }) },
  { title: 'StoredRecords' },
)

const QuotaUse = t.Object(
  { vms: t.Integer(), cpu: t.Integer(), memory: t.Number({ description: 'GiB' }), macos: t.Integer() },
  { title: 'QuotaUse' },
)
export type QuotaUse = t.Static<typeof QuotaUse>

const QuotaOwner = t.Object(
  {
    owner: t.String(),
    weight: t.Number({ description: 'Twice the weight, twice the share. Default: 1' }),
    share: t.Number({
      description: 'Largest fraction of the cores, memory or macOS seats of the namespace, divided by the weight',
    }),
    used: QuotaUse,
    waiting: t.Integer({ description: 'VMs that wait for a node or for the quota' }),
  },
  { title: 'QuotaOwner' },
)
export type QuotaOwner = t.Static<typeof QuotaOwner>

export const Quota = t.Object(
  {
    namespace: t.String(),
    limits: QuotaLimits,
    used: QuotaUse,
    stored: t.Array(StoredRecords, { description: 'Records of each kind that are stored' }),
    owners: t.Array(QuotaOwner, { description: 'Owners of VMs or with a weight, lowest share first' }),
    updatedAt: t.Optional(Timestamp),
    updatedBy: t.Optional(t.String()),
  },
  { title: 'Quota' },
)
export type Quota = t.Static<typeof Quota>

export const quotaLimits = ['vms', 'cpu', 'memory', 'macos'] as const

export const QuotaInput = t.Object(
  {
    ...limitFields({ minimum: 0, maximum: 1_000_000 }),
    unlimited: t.Optional(t.Array(t.Enum(quotaLimits), { maxItems: 4, description: 'Limits to remove' })),
    records: t.Optional(
      t.Integer({ minimum: 0, maximum: 1_000_000, description: 'Records of each kind. Default: 20000' }),
    ),
    recordSize: t.Optional(
      t.Number({
        minimum: 0,
        maximum: 1_024,
        description: 'Size of all records of a kind together, in MiB. Default: 32',
      }),
    ),
    weights: t.Optional(
      t.Record(t.String({ maxLength: 320 }), t.Number({ minimum: 0.01, maximum: 1_000 }), {
        description: 'Weights of owners, as VMs show them. 1: the default again. Others are unchanged',
      }),
    ),
  },
  { title: 'QuotaInput' },
)
export type QuotaInput = t.Static<typeof QuotaInput>

const operation = operationsOf({ noun: 'quotas' })
const path = `${inNamespace}/quota` as const
const params = { namespace: 'svc-default' }
const example = {
  namespace: 'svc-default',
  limits: { vms: 20, cpu: 80, records: 20_000, recordSize: 32 },
  used: { vms: 1, cpu: 4, memory: 8, macos: 1 },
  stored: [{ kind: 'vms', records: 1, size: 0.01 }],
  owners: [
    {
      owner: 'ada@example.com',
      weight: 1,
      share: 0.05,
      used: { vms: 1, cpu: 4, memory: 8, macos: 1 },
      waiting: 0,
    },
  ],
  updatedAt: '2026-11-15T09:00:00Z',
  updatedBy: 'admin',
}

export const getQuota = operation({
  id: 'getQuota',
  method: 'GET',
  path,
  allow: 'dev',
  summary: 'Show the quota of a namespace, and what is used of it',
  isDerived: true,
  response: Quota,
  example: { params, response: example },
})

export const setQuota = operation({
  id: 'setQuota',
  method: 'PUT',
  path,
  allow: 'admin',
  summary: 'Set the quota of a namespace',
  description:
    'Changes only the fields that are sent. A limit below what is in use is refused. A VM over the quota waits, or is ' +
    'refused with `onQuota=refuse`; running VMs are never stopped. Limits of records may be below the current ' +
    'numbers: nothing is deleted, and more records are refused.',
  involves: 'params.namespace',
  involvesKind: 'namespaces',
  past: 'set the quota of namespace {name}',
  tells: ['vms', 'cpu', 'memory', 'macos', 'records', 'recordSize', 'unlimited'],
  isIdempotent: true,
  body: QuotaInput,
  response: Quota,
  refuses: ['Invalid', 'Conflict'],
  example: { params, body: { vms: 20, cpu: 80 }, response: example },
})
