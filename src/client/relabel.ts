// Labels of a VM, changed one by one: read, changed and written back only if nobody else has changed the record since, so that two
// who do this at the same time keep each other's labels.
import { ApiError } from '../api/errors.ts'
import { setMetadata } from '../api/service/metadata.ts'
import { getVm, type Vm } from '../api/vms/vms.ts'
import type { Client } from './client.ts'

type Labels = Readonly<Record<string, string>>

export interface LabelChange {
  readonly name: string
  /** Undefined: the label is removed. */
  readonly value?: string
}

const form = /^([A-Za-z0-9][A-Za-z0-9_./-]*?)(?:=(.*)|-)$/s

/** `team=ios` sets a label, `team-` removes it. Undefined: it is neither. */
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

/** A VM that starts or moves changes a few times in a second. */
const attempts = 20

interface Relabelling {
  readonly namespace: string
  readonly name: string
  readonly changes: readonly LabelChange[]
  /** Throws where the labels that there are forbid it. */
  readonly check?: (labels: Labels) => void
  readonly signal?: AbortSignal
}

/** The VM as it was before, and its labels since. */
export async function relabelVm(
  client: Pick<Client, 'call'>,
  { namespace, name, changes, check, signal }: Relabelling,
): Promise<{ readonly before: Vm; readonly labels: Labels }> {
  const asked = signal ? { signal } : {}
  for (let attempt = 1; ; attempt++) {
    const before = await client.call(getVm, { params: { namespace, vm: name }, ...asked })
    check?.(before.labels)
    const labels = relabelled(before.labels, changes)
    const params = { namespace, kind: 'vms', record: name }
    const body = { labels: { ...labels }, resourceVersion: before.resourceVersion }
    try {
      await client.call(setMetadata, { params, body, ...asked })
      return { before, labels }
    } catch (error) {
      const isChanged = error instanceof ApiError && error.reason === 'Conflict'
      if (!isChanged || attempt === attempts) throw error
    }
  }
}
