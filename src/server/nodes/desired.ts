// The desired state of a VM as sent to its node's agent, with everything needed to carry it out. Each new generation is
// sent once it is written, and the state of all VMs when an agent connects.
import type { AgentMessage, DesiredVm } from '../../api/nodes/agent.ts'
import type { DesiredCapture } from '../../api/nodes/captures.ts'
import { machineOf } from '../../api/vms/vm-shape.ts'
import type { Secrets } from '../../auth/secrets.ts'
import { defined } from '../../platform/defined.ts'
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

/** The credentials for growing file systems, by the uid of the VM. They are sent to an agent and never stored. */
export type GrowthCredentials = Map<
  string,
  { readonly generation: number; readonly user: string; readonly password: string }
>

export interface VmSecret {
  readonly metadata: Readonly<Record<string, string>>
  readonly userdata?: string
}

/** Sends agents every change of their desired state. Returns a function that stops it. */
export function sendDesired(services: DesiredServices): () => void {
  const { collections, fleet } = services
  const unsubscribe = collections.nodes.view.subscribe((changes) => {
    for (const change of changes)
      sendSlots(
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
      // The VM has a new node, was unplaced or lost its record: its old node deletes it.
      const hasLeft = before?.place !== undefined && !(isSame && after.place?.node === before.place.node)
      if (hasLeft && !isDeleted(before) && !isFailedDeployment(before))
        sendVm(
          services,
          { ...before, desired: { ...before.desired, power: 'deleted', generation: before.desired.generation + 1 } },
          changeRev(change),
        )
      if (!after?.place || !fleet.isOpen(after.place.node)) continue
      const isNew = !isSame || before?.place?.node !== after.place.node
      const isSent = before?.desired.generation === after.desired.generation && !hasDropped(before, after)
      if (isNew || !isSent) sendVm(services, after, changeRev(change))
    }
  })
  return () => {
    unsubscribe()
    stop()
  }
}

/**
 * Sends slots (the warm VMs of pools) that are new or whose desired power changed. A slot that left the record was
 * deleted, or was taken by a VM.
 */
function sendSlots(
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

/**
 * A slot first runs, is suspended once it has `bootedAt` (set only in pools that keep warm VMs suspended), and is
 * deleted once it has `leaving`.
 */
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
      ...defined({ recipe: imageRecipe, content: imageContent }),
    },
    ip: waitingAddress(node.report?.ip ?? ''),
    ssh,
    screenshare,
    ...defined({ vnc, readyCommand }),
    reservedPorts: [],
    display: shape.display,
    ...machineOf(shape),
    isSlot: true,
    metadata: {},
    facts: guestFacts({ uid, name, node: node.name, image: shape.image, cpu: shape.cpu, memoryMiB }),
  }
}

/** Whether a capture ended or was cancelled. Agents are told at once, although the generation stays the same. */
const hasDropped = (before: VmRecord, after: VmRecord): boolean =>
  (before.captures?.length ?? 0) > (after.captures?.length ?? 0)

const desiredCapture = (capture: VmCapture): DesiredCapture => {
  const { id, kind, withMemory, format, createdAt } = capture
  return {
    id,
    kind,
    withMemory,
    ...(kind === 'push' && { reference: capture.reference }),
    ...defined({ format, createdAt }),
  }
}

/**
 * The desired state of a node. `kept` names the VMs that must stay although their desired state cannot be computed.
 * `rev` is the revision of the state, if the caller knows one later than that of the views.
 */
export function desiredFor(
  services: DesiredServices,
  node: string,
  rev?: string,
): Omit<Extract<AgentMessage, { type: 'HELLO' }>, 'type' | 'heartbeatSeconds' | 'spreadMs'> {
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

function sendVm(services: DesiredServices, record: VmRecord, revision: string): void {
  if (!record.place || !services.fleet.isOpen(record.place.node)) return
  const desired = tryDesired(services, record, revision)
  if (desired) services.fleet.sendVm(record.place.node, desired)
}

/** If the VM's secret cannot be decrypted, logs the error and skips the VM, so that others are still sent. */
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
  // The content that the disk was created from. The image may have other content now.
  const { imageContent, imageRecipe, imageReference } = record
  const isPinned = (imageContent ?? imageRecipe ?? imageReference) !== undefined
  const content = isPinned ? imageContent : image?.content
  const recipe = isPinned ? imageRecipe : image?.recipe
  // Deleting a VM needs no secret.
  const sealed = desired.power === 'deleted' ? undefined : collections.vmSecrets.get('', uid)
  const secret: VmSecret = sealed ? JSON.parse(secrets.open(sealed.key, sealed.value)) : { metadata: {} }
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
    architecture: shape.architecture,
    cpu: shape.cpu,
    memoryMiB: place.memoryMiB,
    image: {
      name: shape.image,
      ...defined({ recipe, content, reference: imageReference, sizeBytes: image?.sizeBytes }),
    },
    ip: place.ip,
    ssh: place.ssh,
    screenshare: place.screenshare,
    ...defined({ vnc: place.vnc, slot: place.slot, diskGb: desired.diskGb, isoContent: record.isoContent }),
    reservedPorts: [...reservedPorts],
    display: shape.display,
    ...machineOf(shape),
    ...(record.isCold && { isCold: true }),
    ...defined({
      imageStart: record.imageStart,
      captures: record.captures?.map(desiredCapture),
      userdata: secret.userdata,
    }),
    metadata: { ...secret.metadata },
    facts: guestFacts({ uid, name, node: place.node, image: shape.image, cpu: shape.cpu, memoryMiB: place.memoryMiB }),
    ...(grow?.generation === desired.generation && { growth: { user: grow.user, password: grow.password } }),
  }
}
