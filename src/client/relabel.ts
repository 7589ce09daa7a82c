// Changes single labels of a VM: reads the record, and writes the labels only if the record has not changed since, so
// that two concurrent callers keep each other's labels.
import { ApiError } from '../api/errors.ts'
import { setMetadata } from '../api/service/metadata.ts'
import { getVm, type Vm } from '../api/vms/vms.ts'
import { retry, retryPolicies } from '../platform/retry.ts'
import type { Client } from './client.ts'

type Labels = Readonly<Record<string, string>>

export interface LabelChange {
  readonly name: string
  /** Undefined removes the label. */
  readonly value?: string
}

const form = /^([A-Za-z0-9][A-Za-z0-9_./-]*?)(?:=(.*)|-)$/s

/** `team=ios` sets a label, `team-` removes it. Returns undefined for any other text. */
export function parseLabelChange(text: string): LabelChange | undefined {
  const [, name, value] = form.exec(text) ?? []
  return name === undefined ? undefined : { name, ...(value !== undefined && { value }) }
}

export function relabelled(labels: Labels, changes: readonly LabelChange[]): Labels {
  const next = new Map(Object.entries(labels))
  for (const { name, value } of changes)
    if (value === undefined) next.delete(name)
    else next.set(name, value)
  return Object.fromEntries(next)
}

interface Relabelling {
  readonly namespace: string
  readonly name: string
  readonly changes: readonly LabelChange[]
  /** Throws if the present labels forbid the change. */
  readonly check?: (labels: Labels) => void
  readonly signal?: AbortSignal
}

/** Returns the VM before the change, and its new labels. */
export function relabelVm(
  client: Pick<Client, 'call'>,
  { namespace, name, changes, check, signal }: Relabelling,
): Promise<{ readonly before: Vm; readonly labels: Labels }> {
  const asked = signal ? { signal } : {}
  const attempt = async () => {
    const before = await client.call(getVm, { params: { namespace, vm: name }, ...asked })
    check?.(before.labels)
    const labels = relabelled(before.labels, changes)
    const params = { namespace, kind: 'vms', record: name }
    const body = { labels: { ...labels }, resourceVersion: before.resourceVersion }
    await client.call(setMetadata, { params, body, ...asked })
    return { before, labels }
  }
  const isChanged = (error: unknown): boolean => error instanceof ApiError && error.reason === 'Conflict'
  return retry(attempt, { policy: retryPolicies.conflict, signal, isRetriable: isChanged })
}
