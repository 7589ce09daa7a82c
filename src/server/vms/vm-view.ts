// Renders a VM's record for the API.
import type { Vm } from '../../api/vms/vms.ts'
import { preciseTimestamp } from '../../platform/clock.ts'
import { defined } from '../../platform/defined.ts'
import { gibibytes } from '../../rules/sizes.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { Entry } from '../../store/store.ts'

type Power = Vm['powerState']

/** A stopped or suspended VM lists as Running (docs/spec.md R33). */
const statuses: Readonly<Record<Power, Vm['status']>> = {
  pending: 'Pending',
  starting: 'Pending',
  running: 'Running',
  stopped: 'Running',
  suspended: 'Running',
  failed: 'Failed',
  unknown: 'Running',
}

const statusOf = ({ observed }: VmRecord): Vm['status'] =>
  observed.hasRun && observed.power !== 'failed' ? 'Running' : statuses[observed.power]

/** The operation in progress, in one word. */
export function busyWith({ desired, observed }: VmRecord): string | undefined {
  return observed.generation < desired.generation ? desired.action : undefined
}

export function vmView({ value, rev }: Entry<VmRecord>): Vm {
  const { shape, place, observed, desired } = value
  const busy = busyWith(value)
  // The last report of a node that does not respond is outdated.
  const reported = busy !== undefined && isLost(value) ? undefined : observed.operation
  const operation = reported ?? (busy === undefined ? undefined : { kind: busy, phase: phaseOf(value) })
  return {
    name: value.name,
    namespace: value.namespace,
    uid: value.uid,
    status: statusOf(value),
    powerState: observed.power,
    ...(place && { node: place.node, ip: place.ip, ssh: place.ssh, screenshare: place.screenshare }),
    ...defined({ vnc: place?.vnc, diskGb: observed.diskGb ?? desired.diskGb, operation }),
    reservedPorts: [...value.reservedPorts],
    cpu: shape.cpu,
    memory: place ? gibibytes(place.memoryMiB) : shape.memoryMiB === 0 ? 'auto' : gibibytes(shape.memoryMiB),
    diskGeneration: desired.diskGeneration,
    image: shape.image,
    architecture: shape.architecture,
    type: shape.architecture,
    gpuPassthrough: shape.gpuPassthrough,
    owner: value.owner,
    deployDate: value.createdAt,
    ...(value.times && { timeline: timelineOf(value.times) }),
    ...defined({ priority: value.priority, expiresAt: value.expiresAt, warm: value.warm }),
    labels: { ...value.labels },
    metadataKeys: [...value.metadataKeys],
    ...defined({ errorMessage: value.failure ?? observed.problem, warning: observed.warning }),
    conditions: [...value.conditions],
    resourceVersion: rev,
  }
}

function timelineOf({ requestedMs, placedMs, startedMs, bootedMs }: NonNullable<VmRecord['times']>) {
  return {
    requestedAt: preciseTimestamp(requestedMs),
    ...(placedMs !== undefined && { placedAt: preciseTimestamp(placedMs) }),
    ...(startedMs !== undefined && { startedAt: preciseTimestamp(startedMs) }),
    ...(bootedMs !== undefined && { bootedAt: preciseTimestamp(bootedMs) }),
  }
}

const phaseOf = (record: VmRecord): string =>
  record.place ? `waiting for node ${record.place.node}${isLost(record) ? ' (NOT READY)' : ''}` : 'waiting for a node'

const isLost = ({ conditions }: VmRecord): boolean =>
  conditions.some(({ type, status }) => type === 'NodeReady' && status === 'False')
