// Handlers for agents: join, tokens, reports, content and tunnels.
import { randomUUID } from 'node:crypto'
import { ApiError, invalid, invalidField, notFound } from '../../../api/errors.ts'
import type * as api from '../../../api/nodes/agent.ts'
import type { Peer, VmReport } from '../../../api/nodes/agent.ts'
import type { NodeReport } from '../../../api/nodes/node-report.ts'
import { openServerTunnel } from '../../../api/nodes/servers.ts'
import { type NodeKeys, parseNodeKey } from '../../../auth/node-keys.ts'
import type { Tokens } from '../../../auth/tokens.ts'
import type { ContentStore } from '../../../images/content/content.ts'
import { digestPattern } from '../../../images/format/format.ts'
import { timestamp } from '../../../platform/clock.ts'
import { isNodeName } from '../../../rules/names.ts'
import type { NamespaceRecord } from '../../../store/records/collections.ts'
import type { NodeRecord } from '../../../store/records/fleet-records.ts'
import { isFailedDeployment } from '../../../store/records/node-vms.ts'
import { takeSlotReport } from '../../../store/records/pools.ts'
import { releaseQuota } from '../../../store/records/quotas.ts'
import { changeNode, changeVm, forgetVm } from '../../../store/records/vms.ts'
import { type Entry, isFault } from '../../../store/store.ts'
import { checkNamespace, writeInside } from '../../gate/namespace.ts'
import { Answer } from '../../http/answer.ts'
import type { Metrics } from '../../http/metrics.ts'
import type { NodeAuthority } from '../../nodes/authority.ts'
import { recordBootOrder } from '../../nodes/boot-orders.ts'
import { settledCache } from '../../nodes/cache.ts'
import type { ChunkHolders } from '../../nodes/chunk-holders.ts'
import type { GreetingServices } from '../../nodes/greeting.ts'
import { createImageFigures } from '../../nodes/image-figures.ts'
import { badJoinToken, joinOnce } from '../../nodes/join-once.ts'
import type { NodeRelay } from '../../nodes/node-relay.ts'
import type { PeerTickets } from '../../nodes/peer-tickets.ts'
import { mergeReport } from '../../nodes/reports.ts'
import { pipeBoth, type Tunnels } from '../../nodes/tunnels.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import type { Download } from '../../transfer/downloads.ts'

const kind = 'nodes'

interface AgentServices extends GreetingServices {
  readonly content: ContentStore
  readonly nodeRelay: NodeRelay
  readonly nodeKeys: NodeKeys
  readonly nodeAuthority: NodeAuthority
  readonly peerTickets: PeerTickets
  readonly chunkHolders: ChunkHolders
  readonly metrics: Pick<Metrics, 'images'>
  readonly tokens: Tokens
  readonly tunnels: Tunnels
}

export function agent(services: AgentServices): HandlersOf<typeof api> {
  const {
    admission,
    collections,
    content,
    fleet,
    nodeRelay,
    presence,
    peers,
    nodeKeys,
    nodeAuthority,
    peerTickets,
    chunkHolders,
    metrics,
    tokens,
    tunnels,
    clock,
  } = services
  const countImages = createImageFigures(metrics.images)

  /** Returns whether the VM is known. A report that changes nothing is not written; `removed` deletes the record. */
  async function take(node: string, report: VmReport): Promise<boolean> {
    const { namespace, name, uid } = report
    const entry = collections.vms.get(namespace, name)
    if (entry?.value.uid !== uid || entry.value.place?.node !== node)
      return takeSlotReport(collections, node, report, timestamp(clock.now()))
    if (report.power === 'removed') {
      if (entry.value.desired.power === 'deleted') await forgetVm(collections, entry.key, uid)
      return true
    }
    const merged = await changeVm(collections, entry.key, uid, (record) =>
      record.place?.node === node ? mergeReport(record, report, clock.now()) : undefined,
    )
    // A failed deployment that is shown until its owner deletes it uses no capacity.
    if (merged && isFailedDeployment(merged.value)) {
      await releaseQuota(collections, namespace, uid)
    }
    return merged !== undefined
  }

  return {
    async joinCluster({ body: { token, name, publicKey }, now }) {
      const grant = await nodeKeys.openJoinToken(token)
      if (!grant) throw badJoinToken('is not valid')
      const { namespace } = grant
      const issuedFor = (space: Entry<NamespaceRecord>): Entry<NamespaceRecord> => {
        // The token was issued for an earlier namespace of the same name.
        if (grant.issuedAt.getTime() < Date.parse(space.value.createdAt)) throw badJoinToken('is not valid')
        return space
      }
      issuedFor(checkNamespace(services, namespace))
      const causes = [
        ...(isNodeName(name) ? [] : [invalidField('name', `Invalid node name "${name.slice(0, 100)}"`)]),
        ...(parseNodeKey(publicKey) ? [] : [invalidField('publicKey', 'publicKey is not an Ed25519 key')]),
      ]
      if (causes.length > 0) throw invalid(kind, causes, 'Use at most 63 lowercase letters, digits, dashes and periods')
      const known = (record: NodeRecord) => ({
        name,
        namespace: record.namespace,
        uid: record.uid,
        ...(grant.id !== undefined && { joinToken: grant.id }),
      })
      const record: NodeRecord = {
        name,
        namespace,
        uid: randomUUID(),
        createdAt: timestamp(now),
        publicKey,
        tags: [],
        isCordoned: false,
        isReady: false,
      }
      const joined = await joinOnce(services, grant, { name, publicKey })
      try {
        const entry = await writeInside(services, namespace, (space) =>
          collections.nodes.create('', name, record, [issuedFor(space)]),
        )
        await joined()
        return known(entry.value)
      } catch (error) {
        const found = collections.nodes.get('', name)?.value
        if (!isFault(error, 'AlreadyExists') || !found) throw error
        if (found.publicKey === publicKey) {
          await joined()
          return new Answer(200, known(found), true)
        }
        throw new ApiError('AlreadyExists', `Node ${name} already exists with another key`, {
          kind,
          name,
          hint: `Use another name for this host, or remove the old node: svc3 node delete ${name} -n ${found.namespace}`,
        })
      }
    },

    async issueAgentToken({ body: { name, at, signature } }) {
      const node = collections.nodes.get('', name)?.value
      if (!node || !nodeKeys.isSignedBy(node.publicKey, { name, at, signature }))
        throw new ApiError('Unauthorized', `Unauthorized: "${name.slice(0, 100)}" is not a node with that key`, {
          hint: 'If the node was removed, join again with a new token; otherwise check its clock',
        })
      return admission.admit(name, async () => {
        const { token, expiresAt = clock.now() } = await tokens.issue({ kind: 'agent', name, uid: node.uid })
        const certificate = await nodeAuthority.certify(node, expiresAt)
        return { token, expiresAt: timestamp(expiresAt), ...(certificate && { certificate }) }
      })
    },

    async reportNode({ principal: { name }, body, now }) {
      fleet.seen(name)
      nodeRelay.seen(name)
      const isOpen = presence.isOpen(name)
      const write = () =>
        changeNode(collections, name, (record) => {
          const isSame = record.report !== undefined && saysTheSame(record.report, body)
          const cache = settledCache(collections, record, body)
          if (isSame && cache === record.cache && (record.isReady || !isOpen)) return undefined
          const isReady = record.isReady || isOpen
          return { ...record, report: body, isReady, lastSeenAt: timestamp(now), ...(cache && { cache }) }
        })
      const changed = await (isOpen ? write() : admission.admit(name, write))
      if (!changed) throw notFound(kind, name, { hint: 'Join the node again' })
      const { namespace, uid } = changed.value
      return { name, namespace, ...(body.peerPort !== undefined && { peerSecrets: peerTickets.secretsFor(uid) }) }
    },

    noteAgent({ principal: { name } }) {
      fleet.seen(name)
      nodeRelay.seen(name)
      const record = collections.nodes.get('', name)?.value
      if (!record) throw notFound(kind, name, { hint: 'Join the node again' })
      const { report, cache, isReady } = record
      const isSettled = report !== undefined && settledCache(collections, record, report) === cache
      return { wantsReport: !isSettled || (!isReady && presence.isOpen(name)) }
    },

    async reportVms({ principal: { name }, body: { vms, images } }) {
      fleet.seen(name)
      nodeRelay.seen(name)
      if (images) countImages(name, images)
      const known = await Promise.all(vms.map((report) => take(name, report)))
      return { unknown: vms.filter((_, index) => !known[index]).map(({ uid }) => uid) }
    },

    findPeers({ principal, body }) {
      const { content, chunk, without = [] } = body
      const isReached = ({ name, report }: NodeRecord): boolean =>
        report?.peerPort !== undefined && name !== principal.name && presence.isOpen(name)
      const peerOf = ({ name: node, uid, report }: NodeRecord): Peer => ({
        node,
        uid,
        ip: report?.ip ?? '',
        port: report?.peerPort ?? 0,
        ...peerTickets.issue(uid, principal.uid),
      })
      if (chunk === undefined) {
        const hasIt = ({ report }: NodeRecord): boolean =>
          report?.cache?.some(({ key, state }) => key === content && state === 'Ready') === true
        const found = collections.nodes.view.range().filter(({ value }) => hasIt(value) && isReached(value))
        return {
          peers: shuffled(found)
            .slice(0, maxPeers)
            .map(({ value }) => peerOf(value)),
        }
      }
      // Called for every chunk, so it must not look at all nodes.
      const recordOf = (node: string): NodeRecord | undefined => collections.nodes.get('', node)?.value
      const isUsable = (node: string): boolean => {
        const record = recordOf(node)
        return record !== undefined && isReached(record)
      }
      const wanted = { content, chunk, node: principal.name }
      const assigned = chunkHolders.assign(wanted, { without: new Set(without), isUsable })
      const record = assigned === undefined ? undefined : recordOf(assigned)
      return { peers: record ? [peerOf(record)] : [] }
    },

    async noteBootOrder({ body: { content, chunks } }) {
      return { chunks: [...(await recordBootOrder(services, content, chunks))] }
    },

    async getBlob({ params: { digest } }) {
      const bytes = digestPattern.test(digest) ? await content.size(digest) : undefined
      if (bytes === undefined) throw notFound('blobs', digest.slice(0, 80), { hint: 'Read the desired state again' })
      // A whole blob is verified while it is read. Whoever requests ranges verifies what they add up to.
      const read: Download['read'] = (start, end) =>
        start === 0 && end === bytes ? content.open(digest) : content.open(digest, { start, end })
      return { name: digest, bytes, tag: digest, read }
    },

    async openTunnel({ principal: { name }, params: { tunnel } }) {
      const server = tunnels.elsewhere(tunnel)
      const found = server === undefined ? undefined : peers?.servers.find(server)
      if (!peers || !found) return tunnels.answer(name, tunnel)
      // A load balancer may send the node to a server that does not hold the tunnel.
      const path = openServerTunnel.path
        .replace('{node}', encodeURIComponent(name))
        .replace('{tunnel}', encodeURIComponent(tunnel))
      const farSide = await peers.calls.dial(found, path).catch(() => undefined)
      if (!farSide) throw notFound('tunnels', tunnel.slice(0, 64), { hint: 'The tunnel expired or never existed' })
      return { take: (nearSide) => pipeBoth(nearSide, farSide), drop: () => farSide.destroy() }
    },
  }
}

/** Enough to share the load and few enough to try. */
const maxPeers = 4

const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map((item) => ({ item, place: Math.random() }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ item }) => item)

/** Free space changes all the time, so only a significant change is written. */
function saysTheSame(before: NodeReport, after: NodeReport): boolean {
  const { diskFreeGb: was, imageSpace: had, ...rest } = before
  const { diskFreeGb: is, imageSpace: has, ...next } = after
  const isNear = (one = 0, other = 0, least = 0): boolean => Math.abs(one - other) <= Math.max(least, one * 0.02)
  return (
    isNear(was, is, 1) &&
    isNear(had?.quotaBytes, has?.quotaBytes) &&
    isNear(had?.usedBytes, has?.usedBytes, 64 * 2 ** 20) &&
    JSON.stringify(rest) === JSON.stringify(next)
  )
}
