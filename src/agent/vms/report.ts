// Builds the report about a VM from its observed state, its record and work in progress.
import type { VmReport } from '../../api/nodes/agent.ts'
import type { GuestReach } from '../../api/vms/guest-reach.ts'
import type { Observed } from '../../drivers/driver.ts'
import type { ArrivalState } from '../images/arrival.ts'
import type { StoredDesired, VmHandleRecord } from '../state/handles.ts'
import { endedWithHost } from './messages.ts'

interface VmFacts {
  readonly desired: StoredDesired
  readonly record: VmHandleRecord | undefined
  readonly observed: Observed
  readonly portsTaken: readonly number[] | undefined
  readonly isHostUnfit?: boolean | undefined
  readonly booted: boolean | undefined
  readonly reach: GuestReach | undefined
  readonly arrival: ArrivalState | undefined
}

export function reportOf(
  { desired, record, observed, portsTaken, isHostUnfit, booted, reach, arrival }: VmFacts,
  extra: Partial<VmReport> = {},
): VmReport {
  const problem = observed.state === 'failed' ? observed.problem : record?.problem
  const warning = warningOf(observed, record?.warning)
  return {
    uid: desired.uid,
    namespace: desired.namespace,
    name: desired.name,
    generation: record?.fulfilled ?? 0,
    // The VM starts when the server has assigned other ports.
    power: portsTaken ? 'starting' : powerOf(observed, record),
    ...(problem !== undefined && { problem }),
    ...(warning !== undefined && { warning }),
    ...(record?.diskGb && { diskGb: record.diskGb }),
    ...(isHostUnfit && { isHostUnfit }),
    ...(portsTaken && { portsTaken: [...portsTaken] }),
    ...(booted !== undefined && { booted }),
    ...(reach && observed.state === 'running' && { reach }),
    ...(arrival && observed.state === 'running' && { image: arrivalOf(arrival) }),
    ...extra,
  }
}

function arrivalOf({ bytes, of, bytesPerSecond, waiting }: ArrivalState): NonNullable<VmReport['image']> {
  const percent = Math.floor((100 * bytes) / Math.max(1, of))
  return {
    percent,
    bytes,
    totalBytes: of,
    bytesPerSecond,
    ...(waiting !== undefined && { waiting: waiting.slice(0, 1_024) }),
  }
}

/** What a driver observes may extend what its start returned. */
function warningOf(observed: Observed, recorded: string | undefined): string | undefined {
  const note = observed.state === 'running' ? observed.note : observed.state === 'gone' ? endedWithHost : undefined
  return recorded !== undefined && !note?.startsWith(recorded) ? recorded : note
}

const powers: Readonly<Record<Exclude<Observed['state'], 'absent'>, VmReport['power']>> = {
  stopped: 'stopped',
  running: 'running',
  suspended: 'suspended',
  failed: 'failed',
  gone: 'stopped',
}

function powerOf({ state }: Observed, record: VmHandleRecord | undefined): VmReport['power'] {
  if (state !== 'absent') return powers[state]
  // Without a disk, the VM is still to be created, or its creation has failed.
  return record?.problem === undefined ? 'pending' : 'failed'
}
