// The desired state of a VM as sent to its node's agent, with everything needed to carry it out. Each new generation is
// sent once it is written, and everything when an agent connects.
import type { AgentMessage, DesiredVm } from '../../api/nodes/agent.ts'
import type { DesiredCapture } from '../../api/nodes/captures.ts'
import { machineOf } from '../../api/vms/vm-shape.ts'
import type { Secrets } from '../../auth/secrets.ts'
import type { Log } from '../../platform/log.ts'
import { guestFacts } from '../../rules/guest-metadata.ts'
import { waitingAddress } from '../../rules/ports.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { NodeRecord, NodeSlot, SlotAllocation, VmCapture, VmRecord } from '../../store/records/fleet-records.ts'
import { isFailedDeployment, isOnNode } from '../../store/records/node-vms.ts'
import { freeSlots } from '../../store/records/pools.ts'
import { isDeleted } from '../../store/records/vms.ts'
import { changeRev, zeroRev } from '../../store/store.ts'
import { desiredCache } from './cache.ts'
import type { Fleet } from './fleet.ts'

export interface DesiredServices {
  readonly collections: Collections
  readonly secrets: Secrets
  readonly fleet: Fleet
  readonly growth: GrowthCredentials
  readonly log: Log
}

/** Credentials for growing a file system: sent to an agent, and kept nowhere. */
export type GrowthCredentials = Map<
  string,
  { readonly generation: number; readonly user: string; readonly password: string }
>

export interface VmSecret {
  readonly metadata: Readonly<Record<string, string>>
  readonly userdata?: string
}

/** Follows the records; returns how to stop. */
export function sendDesired(services: DesiredServices): () => void {
  const { collections, fleet } = services
  const unsubscribe = collections.nodes.view.subscribe((changes) => {
    for (const change of changes)
      tellSlots(
        services,
        change.previous?.value,
        change.type === 'put' ? change.entry.value : undefined,
        changeRev(change),
      )
  })
  const stop = collections.vms.view.subscribe((changes) => {
    for (const change of changes) {
      const before = change.previous?.value
      const after = change.type === 'put' ? change.entry.value : undefined
      const isSame = after !== undefined && before?.uid === after.uid
      // It moves elsewhere: nothing of it may stay. (Its end was desired, and has been sent.)
      const hasLeft = before?.place !== undefined && !(isSame && after.place?.node === before.place.node)
      if (hasLeft && !isDeleted(before) && !isFailedDeployment(before))
        tell(
          services,
          { ...before, desired: { ...before.desired, power: 'deleted', generation: before.desired.generation + 1 } },
          changeRev(change),
        )
      if (!after?.place || !fleet.isOpen(after.place.node)) continue
      const isNew = !isSame || before?.place?.node !== after.place.node
      const isTold = before?.desired.generation === after.desired.generation && !hasDropped(before, after)
      if (isNew || !isTold) tell(services, after, changeRev(change))
    }
  })
  return () => {
    unsubscribe()
    stop()
  }
}

/** Slots that are new, or that are to go. One that is in the record no more is gone, or a VM has it: that is told elsewhere. */
function tellSlots(
  { collections, fleet }: DesiredServices,
  before: NodeRecord | undefined,
  after: NodeRecord | undefined,
  revision: string,
): void {
  if (!after || !fleet.isOpen(after.name)) return
  for (const [uid, each] of freeSlots(collections, after)) {
    const known = before?.slots?.[uid]?.slot
    if (!known || generationOf(known) !== generationOf(each.slot))
      fleet.sendVm(after.name, desiredSlot(after, uid, each, revision))
  }
}

/** It boots; where it waits as memory, that is saved then; and it goes. */
const generationOf = ({ leaving, bootedAt }: NodeSlot): 1 | 2 | 3 => (leaving ? 3 : bootedAt === undefined ? 1 : 2)
const powers = { 1: 'running', 2: 'suspended', 3: 'deleted' } as const

function desiredSlot(node: NodeRecord, uid: string, each: SlotAllocation, revision: string): DesiredVm {
  const { namespace, name, slot } = each
  const { memoryMiB } = slot.size ?? each
  const generation = generationOf(slot)
  const { shape, imageContent, imageRecipe, ssh, vnc, screenshare, readyCommand } = slot
  return {
    name,
    namespace,
    uid,
    generation,
    revision,
    power: powers[generation],
    diskGeneration: 1,
    architecture: shape.architecture,
    cpu: shape.cpu,
    memoryMiB,
    image: {
      name: shape.image,
      ...(imageRecipe !== undefined && { recipe: imageRecipe }),
      ...(imageContent !== undefined && { content: imageContent }),
    },
    ip: waitingAddress(node.report?.ip ?? ''),
    ssh,
    screenshare,
    ...(vnc !== undefined && { vnc }),
    reservedPorts: [],
    display: shape.display,
    ...machineOf(shape),
    isSlot: true,
    ...(readyCommand !== undefined && { readyCommand }),
    metadata: {},
    facts: guestFacts({ uid, name, node: node.name, image: shape.image, cpu: shape.cpu, memoryMiB }),
  }
}

/** What is cancelled is to be given up now; what has come, its node knows. */
const hasDropped = (before: VmRecord, after: VmRecord): boolean =>
  (before.captures?.length ?? 0) > (after.captures?.length ?? 0)

const desiredCapture = (capture: VmCapture): DesiredCapture => ({
  id: capture.id,
  kind: capture.kind,
  withMemory: capture.withMemory,
  ...(capture.kind === 'push' && { reference: capture.reference }),
  ...(capture.format !== undefined && { format: capture.format }),
  ...(capture.createdAt !== undefined && { createdAt: capture.createdAt }),
})

/** The desired state of a node, and what must stay there though its desired state is unknown. */
export function desiredFor(
  services: DesiredServices,
  node: string,
  /** The revision that this is made from; the view's, unless a later one is known. */
  rev?: string,
): Omit<Extract<AgentMessage, { type: 'HELLO' }>, 'type' | 'heartbeatSeconds' | 'takesNotes' | 'spreadMs'> {
  const vms: DesiredVm[] = []
  const kept: string[] = []
  const own = services.collections.nodes.get('', node)?.value
  for (const [uid, each] of own ? freeSlots(services.collections, own) : [])
    if (own) vms.push(desiredSlot(own, uid, each, rev ?? services.collections.vms.view.rev))
  for (const { value: record, rev: of } of own ? services.collections.nodeVms.on(node) : []) {
    if (!isOnNode(record)) continue
    const vm = tryDesired(services, record, of)
    if (vm) vms.push(vm)
    else kept.push(record.uid, ...(record.place?.slot === undefined ? [] : [record.place.slot]))
  }
  const { cluster, vms: all } = services.collections
  const data = cluster.get('', 'id')?.value
  const eras = (data?.eras ?? []).map(({ uid, since }) => ({ uid, since }))
  const store = { uid: data?.uid ?? '', revision: rev ?? all.view.rev, eras }
  const cache = desiredCache(services.collections, services.collections.nodes.get('', node)?.value)
  return { vms, kept, store, cache }
}

function tell(services: DesiredServices, record: VmRecord, revision: string): void {
  if (!record.place || !services.fleet.isOpen(record.place.node)) return
  const desired = tryDesired(services, record, revision)
  if (desired) services.fleet.sendVm(record.place.node, desired)
}

/** A secret that does not open is logged as an error, and does not block other VMs. */
function tryDesired(services: DesiredServices, record: VmRecord, revision = zeroRev): DesiredVm | undefined {
  try {
    return desiredOf(services, record, revision)
  } catch (error) {
    const { name, namespace } = record
    services.log.error('a VM cannot be sent to its node', { name, namespace }, error)
    return undefined
  }
}

function desiredOf(
  { collections, secrets, growth }: DesiredServices,
  record: VmRecord,
  revision: string,
): DesiredVm | undefined {
  const { name, namespace, uid, shape, desired, observed, place, reservedPorts } = record
  if (!place) return undefined
  const image = collections.images.get('', shape.image)?.value
  // What the image was when its disk was made: the name may stand for something else by now.
  const { imageContent, imageRecipe, imageReference } = record
  const isPinned = (imageContent ?? imageRecipe ?? imageReference) !== undefined
  const content = isPinned ? imageContent : image?.content
  const recipe = isPinned ? imageRecipe : image?.recipe
  // The end of a VM needs no secret.
  const sealed = desired.power === 'deleted' ? undefined : collections.vmSecrets.get('', uid)
  const secret = sealed ? (JSON.parse(secrets.open(sealed.key, sealed.value)) as VmSecret) : { metadata: {} }
  const grow = growth.get(uid)
  return {
    name,
    namespace,
    uid,
    generation: desired.generation,
    fulfilled: observed.generation,
    revision,
    power: desired.power,
    diskGeneration: desired.diskGeneration,
    ...(desired.diskGb !== undefined && { diskGb: desired.diskGb }),
    architecture: shape.architecture,
    cpu: shape.cpu,
    memoryMiB: place.memoryMiB,
    image: {
      name: shape.image,
      ...(recipe !== undefined && { recipe }),
      ...(content !== undefined && { content }),
      ...(imageReference !== undefined && { reference: imageReference }),
    },
    ip: place.ip,
    ssh: place.ssh,
    screenshare: place.screenshare,
    ...(place.vnc !== undefined && { vnc: place.vnc }),
    reservedPorts: [...reservedPorts],
    display: shape.display,
    ...machineOf(shape),
    ...(record.isoContent !== undefined && { isoContent: record.isoContent }),
    ...(record.isCold && { isCold: true }),
    ...(record.imageStart && { imageStart: record.imageStart }),
    ...(place.slot !== undefined && { slot: place.slot }),
    ...(record.captures && { captures: record.captures.map(desiredCapture) }),
    metadata: { ...secret.metadata },
    facts: guestFacts({ uid, name, node: place.node, image: shape.image, cpu: shape.cpu, memoryMiB: place.memoryMiB }),
    ...(secret.userdata !== undefined && { userdata: secret.userdata }),
    ...(grow?.generation === desired.generation && { growth: { user: grow.user, password: grow.password } }),
  }
}
