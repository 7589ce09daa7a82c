// Handlers of nodes: list, free capacity, and what an administrator decides about them.
import { randomUUID } from 'node:crypto'
import { type ApiError, type Cause, conflict, invalid, invalidField, notFound, success } from '../../../api/errors.ts'
import type * as api from '../../../api/nodes/nodes.ts'
import type { Node } from '../../../api/nodes/nodes.ts'
import type { NodeKeys } from '../../../auth/node-keys.ts'
import { timestamp } from '../../../platform/clock.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { encodeJoinString } from '../../../rules/join-string.ts'
import { isTag, realNamespace } from '../../../rules/names.ts'
import { hasExpired } from '../../../rules/retention.ts'
import { nodeMemory } from '../../../rules/sizes.ts'
import { caughtUp, currentRev } from '../../../store/records/caught-up.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { NodeRecord } from '../../../store/records/fleet-records.ts'
import { isOnNode, nodeUseOf } from '../../../store/records/node-vms.ts'
import { freeSlots } from '../../../store/records/pools.ts'
import { changeNode, removeVm, unmarkNode, withoutMark } from '../../../store/records/vms.ts'
import { isRehearsal } from '../../../store/rehearsal.ts'
import { type Entry, type Precondition, type Store, StoreError } from '../../../store/store.ts'
import type { Peers } from '../../cluster/server-calls.ts'
import type { Settings } from '../../config/settings.ts'
import { checkNamespace, writeInside } from '../../gate/namespace.ts'
import { listing } from '../../lists/listing.ts'
import type { Tunnels } from '../../nodes/tunnels.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import type { Certificates } from '../../tls/certificates.ts'

const kind = 'nodes'
const joinTokenSeconds = 3_600
const longestJoinSeconds = 30 * 86_400
const catchUpMs = 5_000

interface NodeServices {
  readonly collections: Collections
  readonly store: Pick<Store, 'list' | 'reached'>
  readonly nodeKeys: NodeKeys
  readonly settings: Pick<Settings, 'compat'>
  readonly peers?: Peers | undefined
  readonly certificates: Certificates
  readonly tunnels: Pick<Tunnels, 'measureNode'>
  readonly apiUrl: () => string
}

export function nodes(services: NodeServices): HandlersOf<typeof api> {
  const { collections, nodeKeys, settings } = services
  const missing = (namespace: string, name: string): ApiError => notFound(kind, name, { namespace })
  const existing = (namespace: string, name: string): Entry<NodeRecord> => {
    const entry = collections.nodes.get('', name)
    if (entry?.value.namespace !== namespace) throw missing(namespace, name)
    return entry
  }

  async function change(
    { namespace, name }: { namespace: string; name: string },
    { requestKey, now }: { readonly requestKey: string | undefined; readonly now: Date },
    next: (record: NodeRecord) => NodeRecord,
    preconditions?: readonly Precondition[],
  ): Promise<Node> {
    existing(namespace, name)
    const changed = await changeNode(
      collections,
      name,
      (record) => {
        if (record.namespace !== namespace) throw missing(namespace, name)
        // A repeated request whose answer was lost in a crash.
        const { request } = record
        if (request && request.key === requestKey && !hasExpired('answer', request.at, timestamp(now))) return undefined
        return {
          ...next(record),
          ...(requestKey !== undefined && { request: { key: requestKey, at: timestamp(now) } }),
        }
      },
      preconditions,
    )
    if (!changed) throw missing(namespace, name)
    return shown(changed)
  }

  const shown = (entry: Entry<NodeRecord>): Node => shownNode(collections, entry)
  const keysOf = (names: Iterable<string>): string[] => [...names].map((name) => collections.nodes.key('', name))

  /** Waits until this server has seen all VMs that other servers have written. */
  async function vmsSeen(): Promise<void> {
    const rev = await currentRev(services.store)
    await caughtUp(services.store, [collections.vms.view], rev, AbortSignal.timeout(catchUpMs)).catch((cause) => {
      throw new StoreError('Unavailable', 'This server has not seen all VMs yet: try again', { cause })
    })
  }

  /**
   * Does `work`, which must not happen to a node with VMs. The node is marked before its VMs are looked for, so that a
   * later placement is refused, and an earlier one is found. `work` gets the mark; another request has interfered if
   * the record no longer has it.
   */
  async function whileEmpty<T>(
    { namespace, name }: { namespace: string; name: string },
    what: string,
    work: (mark: string | undefined) => Promise<T>,
  ): Promise<T> {
    mustBeEmpty(collections, existing(namespace, name).value, what)
    if (isRehearsal()) return work(undefined)
    const mark = randomUUID()
    await changeNode(collections, name, (record) => ({ ...record, leaving: mark }))
    try {
      await vmsSeen()
      mustBeEmpty(collections, existing(namespace, name).value, what)
      return await work(mark)
    } catch (error) {
      await unmarkNode(collections, name, mark)
      throw error
    }
  }

  return {
    listNodes: ({ params }) => ({
      ...listing(collections.nodes, '', shown, ({ namespace }) => namespace === params.namespace),
      isCutByPath: true,
      isDerived: true,
      extraChanges: (changed) => collections.nodeVms.subscribe((nodes) => changed(keysOf(nodes))),
      extraAfter: async (rev, signal) => keysOf(await collections.nodeVms.touchedAfter(rev, signal)),
    }),

    getNodeCharts: ({ params: { namespace, name }, query }) =>
      services.tunnels.measureNode(existing(namespace, name).value, query?.minutes),

    async tagNode({ params, body: { tag }, ...asked }) {
      if (!isTag(tag)) throw badTag(tag)
      return change(params, asked, (record) => ({
        ...record,
        tags: [...new Set([...record.tags, tag])].toSorted(),
      }))
    },

    untagNode: ({ params, body: { tag }, ...asked }) =>
      change(params, asked, (record) => {
        if (!record.tags.includes(tag))
          throw notFound('tags', tag, { hint: `Node ${record.name} has ${record.tags.join(', ') || 'no tags'}` })
        return { ...record, tags: record.tags.filter((each) => each !== tag) }
      }),

    async moveNode({ params, body, ...asked }) {
      const namespace = realNamespace(body.namespace, settings.compat.namespaceAliases)
      const moved = (record: NodeRecord, mark: string | undefined) => ({
        ...withoutMark(marked(record, mark)),
        namespace,
      })
      const isSame = namespace === params.namespace
      const found = collections.nodes.get('', params.name)
      const isKnown = asked.requestKey !== undefined && found?.value.request?.key === asked.requestKey
      // A repeated request whose answer was lost in a crash.
      if (found && isKnown && !isSame && found.value.namespace === namespace) return shown(found)
      return writeInside(services, namespace, (space) =>
        isSame
          ? change(params, asked, (record) => record)
          : whileEmpty(params, 'moved', (mark) => change(params, asked, (record) => moved(record, mark), [space])),
      )
    },

    cordonNode: ({ params, ...asked }) => change(params, asked, (record) => ({ ...record, isCordoned: true })),
    uncordonNode: ({ params, ...asked }) =>
      change(params, asked, (record) => ({ ...withoutMark(record), isCordoned: false })),

    async drainNode({ params, body, ...asked }) {
      const node = await change(params, asked, (record) => ({ ...record, isCordoned: true }))
      if (body?.deleteVms !== true) return node
      await vmsSeen()
      for (const entry of [...collections.nodeVms.on(params.name)])
        if (isOnNode(entry.value)) await removeVm(collections, entry, undefined)
      return shown(existing(params.namespace, params.name))
    },

    async deleteNode({ params: { namespace, name } }) {
      await whileEmpty({ namespace, name }, 'removed', (mark) =>
        collections.nodes.change(collections.nodes.key('', name), () => {
          mustBeEmpty(collections, marked(existing(namespace, name).value, mark), 'removed')
          return null
        }),
      )
      return success(`Node ${name} removed`, { kind, name })
    },

    async createJoinToken({ params: { namespace }, body }) {
      checkNamespace(services, namespace)
      const seconds = body?.duration === undefined ? joinTokenSeconds : parseDuration(body.duration)
      if (seconds === undefined || seconds < 60 || seconds > longestJoinSeconds) throw badDuration(body?.duration ?? '')
      const once = body?.reusable ? undefined : 'once'
      const { id, token, expiresAt } = await nodeKeys.issueJoinToken(namespace, seconds, once)
      const urls = services.peers?.servers.alive().map(({ apiUrl }) => apiUrl) ?? []
      const pin = await pinOf(services)
      const join = encodeJoinString({ urls: [...new Set([...urls, services.apiUrl()])], pin, token })
      return { id, token, expiresAt: timestamp(expiresAt), join }
    },
  }
}

/** Pins only self-signed certificates. A certificate authority's may be renewed with another key. */
async function pinOf({ apiUrl, certificates }: NodeServices): Promise<string | undefined> {
  if (!apiUrl().startsWith('https:')) return undefined
  const { selfSigned, publicKeyFingerprint } = (await certificates.current()).facts
  return selfSigned ? publicKeyFingerprint : undefined
}

const vmsOn = ({ nodeVms }: Collections, node: string): string[] =>
  [...nodeVms.on(node)].flatMap(({ value }) => (isOnNode(value) ? [`${value.namespace}/${value.name}`] : [])).toSorted()

function shownNode(collections: Collections, { value, rev }: Entry<NodeRecord>): Node {
  const { report, name } = value
  const used = { cpu: 0, memoryMiB: 0, gpus: 0 }
  const uses = [...collections.nodeVms.on(name)].flatMap((vm) => nodeUseOf(vm.value) ?? [])
  for (const { cpu, memoryMiB, gpus } of [...uses, ...freeSlots(collections, value).map(([, slot]) => slot)]) {
    used.cpu += cpu
    used.memoryMiB += memoryMiB
    used.gpus += gpus
  }
  const has = { cpu: report?.cpu ?? 0, memoryMiB: report?.memoryMiB ?? 0, gpus: report?.gpus ?? 0 }
  const reason = unfitness(value)
  return {
    name: value.name,
    namespace: value.namespace,
    uid: value.uid,
    nodeIP: report?.ip ?? '',
    architecture: report?.architecture ?? 'amd64',
    availableCpu: Math.max(0, has.cpu - used.cpu),
    availableMemory: nodeMemory(Math.max(0, has.memoryMiB - used.memoryMiB)),
    availableGpu: Math.max(0, has.gpus - used.gpus),
    allocatableCpu: has.cpu,
    allocatableMemory: nodeMemory(has.memoryMiB),
    allocatableGpu: has.gpus,
    nodeType: 'WORKER',
    phase: value.isReady && report !== undefined && report.problem === undefined ? 'READY' : 'NOT READY',
    ...(reason !== undefined && { reason }),
    cordoned: value.isCordoned || value.leaving !== undefined,
    orkaTags: [...value.tags],
    vms: vmsOn(collections, name),
    ...(report?.maxVms !== undefined && { maxVms: report.maxVms }),
    ...(report?.maxMacosVms !== undefined && { maxMacosVms: report.maxMacosVms }),
    ...(report?.noMacos !== undefined && { noMacos: report.noMacos }),
    images: report ? [...report.images] : [],
    ...(report && { diskFreeGb: report.diskFreeGb }),
    driver: report ? `${report.driver} (${report.driverVersion})` : '',
    version: report?.version ?? '',
    os: report?.os ?? '',
    createdAt: value.createdAt,
    ...(value.lastSeenAt !== undefined && { lastSeenAt: value.lastSeenAt }),
    resourceVersion: rev,
  }
}

/** Why a node accepts no VMs. */
function unfitness({ isReady, report, isCordoned, leaving }: NodeRecord): string | undefined {
  if (!report) return 'The agent has not reported yet'
  if (!isReady) return 'The agent is not connected'
  if (report.problem !== undefined) return report.problem
  return isCordoned || leaving !== undefined ? 'Cordoned' : undefined
}

/** Refuses if another request has taken the mark. */
function marked(record: NodeRecord, mark: string | undefined): NodeRecord {
  if (mark === undefined || record.leaving === mark) return record
  throw conflict(kind, record.name, 'is being removed, moved or uncordoned by another request', 'Try again')
}

function occupied({ name, namespace, isReady }: NodeRecord, vms: readonly string[], what: string): ApiError {
  const hint = isReady
    ? `Delete the VMs, or drain the node first: svc3 node drain ${name} -n ${namespace}`
    : `The node is NOT READY. If it will not come back, delete its VMs: svc3 vm delete NAME -n ${namespace} --force`
  return conflict(kind, name, `cannot be ${what} while it has VMs: ${vms.join(', ')}`, hint)
}

function mustBeEmpty(collections: Collections, node: NodeRecord, what: string): void {
  const { name, namespace } = node
  const vms = vmsOn(collections, name)
  if (vms.length > 0) throw occupied(node, vms, what)
  // The warm VMs of a lost host are removed with its record, because no agent will ever report that they are gone.
  const count = what === 'removed' && !node.isReady ? 0 : freeSlots(collections, node).length
  if (count === 0) return
  const hint = `Cordon the node, which removes its warm VMs: svc3 node cordon ${name} -n ${namespace}`
  throw conflict(kind, name, `cannot be ${what} while it has warm VMs of pools (${count})`, hint)
}

function badTag(tag: string): ApiError {
  const message = `Invalid tag "${tag.slice(0, 100)}"`
  const problem: Cause = invalidField('tag', message)
  const hint = 'Use at most 63 letters, digits and - _ . that start and end with a letter or digit'
  return invalid(kind, [problem], hint)
}

function badDuration(duration: string): ApiError {
  const message = `Invalid duration "${duration}": choose 1m to 30d`
  return invalid(kind, [invalidField('duration', message)], 'Use a duration such as 1h')
}
