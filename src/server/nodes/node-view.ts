// Renders a node for the API.
import type { Node } from '../../api/nodes/nodes.ts'
import { defined } from '../../platform/defined.ts'
import { nodeMemory } from '../../rules/sizes.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { NodeRecord } from '../../store/records/fleet-records.ts'
import { isOnNode, nodeUseOf } from '../../store/records/node-vms.ts'
import { freeSlots } from '../../store/records/pools.ts'
import type { Entry } from '../../store/store.ts'

type Resource = 'cpu' | 'memoryMiB' | 'gpus'

export function nodeView(collections: Collections, { value, rev }: Entry<NodeRecord>): Node {
  const { report, name, namespace, uid, createdAt, lastSeenAt } = value
  const uses = [...collections.nodeVms.on(name)].flatMap((vm) => nodeUseOf(vm.value) ?? [])
  const all = [...uses, ...freeSlots(collections, value).map(([, slot]) => slot)]
  const total = (resource: Resource): number => report?.[resource] ?? 0
  const available = (resource: Resource): number =>
    Math.max(
      0,
      all.reduce((left, use) => left - use[resource], total(resource)),
    )
  return {
    name,
    namespace,
    uid,
    nodeIP: report?.ip ?? '',
    architecture: report?.architecture ?? 'amd64',
    availableCpu: available('cpu'),
    availableMemory: nodeMemory(available('memoryMiB')),
    availableGpu: available('gpus'),
    allocatableCpu: total('cpu'),
    allocatableMemory: nodeMemory(total('memoryMiB')),
    allocatableGpu: total('gpus'),
    nodeType: 'WORKER',
    phase: value.isReady && report !== undefined && report.problem === undefined ? 'READY' : 'NOT READY',
    ...defined({ reason: reasonAgainst(value) }),
    cordoned: value.isCordoned || value.leaving !== undefined,
    orkaTags: [...value.tags],
    vms: vmNamesOn(collections, name),
    ...defined({ maxVms: report?.maxVms, maxMacosVms: report?.maxMacosVms, noMacos: report?.noMacos }),
    ...(report?.checks && { checks: [...report.checks] }),
    images: report ? [...report.images] : [],
    driver: report ? `${report.driver} (${report.driverVersion})` : '',
    version: report?.version ?? '',
    os: report?.os ?? '',
    createdAt,
    ...defined({ diskFreeGb: report?.diskFreeGb, lastSeenAt }),
    resourceVersion: rev,
  }
}

/** The VMs on a node, as `namespace/name`. */
export const vmNamesOn = ({ nodeVms }: Collections, node: string): string[] =>
  [...nodeVms.on(node)].flatMap(({ value }) => (isOnNode(value) ? [`${value.namespace}/${value.name}`] : [])).toSorted()

function reasonAgainst({ isReady, report, isCordoned, leaving }: NodeRecord): string | undefined {
  if (!report) return 'The agent has not reported yet'
  if (!isReady) return 'The agent is not connected'
  if (report.problem !== undefined) return report.problem
  return isCordoned || leaving !== undefined ? 'Cordoned' : undefined
}
