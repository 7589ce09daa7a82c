// Handlers for agents: join, tokens, reports, content and tunnels.
import { randomUUID } from 'node:crypto'
import { ApiError, type Cause, conflict, invalid, invalidIf, notFound } from '../../../api/errors.ts'
import type * as api from '../../../api/nodes/agent.ts'
import type { VmReport } from '../../../api/nodes/agent.ts'
import type { NodeReport } from '../../../api/nodes/node-report.ts'
import { openServerTunnel } from '../../../api/nodes/servers.ts'
import type { BodyOf, ResponseOf } from '../../../api/operation.ts'
import { type NodeKeys, parseNodeKey } from '../../../auth/node-keys.ts'
import type { Tokens } from '../../../auth/tokens.ts'
import type { ContentStore } from '../../../images/content/content.ts'
import { timestamp } from '../../../platform/clock.ts'
import { defined } from '../../../platform/defined.ts'
import { isNodeName } from '../../../rules/names.ts'
import type { NodeRecord } from '../../../store/records/fleet-records.ts'
import { isFailedDeployment } from '../../../store/records/node-vms.ts'
import { takeSlotReport } from '../../../store/records/pools.ts'
import { releaseQuota } from '../../../store/records/quotas.ts'
import { changeNode, changeVm, forgetVm } from '../../../store/records/vms.ts'
import { ignoreLost, isFault } from '../../../store/store.ts'
import { checkNamespace, writeInside } from '../../gate/namespace.ts'
import { Answer } from '../../http/answer.ts'
import type { Metrics } from '../../http/metrics.ts'
import { blobOf } from '../../images/blobs.ts'
import type { NodeAuthority } from '../../nodes/authority.ts'
import { recordBootOrder } from '../../nodes/boot-orders.ts'
import { settledCache } from '../../nodes/cache.ts'
import { findPeers, type PeerServices } from '../../nodes/find-peers.ts'
import type { GreetingServices } from '../../nodes/greeting.ts'
import { createImageFigures } from '../../nodes/image-figures.ts'
import { badJoinToken, badSignature, joinOnce } from '../../nodes/join-once.ts'
import type { NodeRelay } from '../../nodes/node-relay.ts'
import { mergeReport } from '../../nodes/reports.ts'
import { pipeBoth, type Tunnels } from '../../nodes/tunnels.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

const kind = 'nodes'

interface AgentServices extends GreetingServices, PeerServices {
  readonly nodeKeys: NodeKeys
  readonly content: ContentStore
  readonly nodeRelay: NodeRelay
  readonly nodeAuthority: NodeAuthority
  readonly metrics: Pick<Metrics, 'images'>
  readonly tokens: Tokens
  readonly tunnels: Tunnels
}

export function agent(services: AgentServices): HandlersOf<typeof api> {
  const { admission, collections, content, fleet, nodeRelay, presence, peers, tokens, tunnels, clock } = services
  const countImages = createImageFigures(services.metrics.images)
  const seen = (node: string): void => {
    fleet.seen(node)
    nodeRelay.seen(node)
  }

  /** Returns whether the VM is known. */
  async function takeReport(node: string, report: VmReport): Promise<boolean> {
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
    if (merged && isFailedDeployment(merged.value)) await releaseQuota(collections, namespace, uid)
    return merged !== undefined
  }

  return {
    joinCluster: ({ body, now }) => join(services, body, now),

    async issueAgentToken({ body: { name, at, signature } }) {
      const node = collections.nodes.get('', name)?.value
      if (!node || !services.nodeKeys.isSignedBy(node.publicKey, { name, at, signature })) throw badSignature(name)
      return admission.admit(name, async () => {
        const { token, expiresAt = clock.now() } = await tokens.issue({ kind: 'agent', name, uid: node.uid })
        const certificate = await services.nodeAuthority.certify(node, expiresAt)
        return { token, expiresAt: timestamp(expiresAt), ...(certificate && { certificate }) }
      })
    },

    async reportNode({ principal: { name }, body, now }) {
      seen(name)
      const isOpen = presence.isOpen(name)
      const write = () =>
        changeNode(collections, name, (record) => {
          const isSame = record.report !== undefined && isSimilar(record.report, body)
          const cache = settledCache(collections, record, body)
          if (isSame && cache === record.cache && (record.isReady || !isOpen)) return undefined
          const isReady = record.isReady || isOpen
          return { ...record, report: body, isReady, lastSeenAt: timestamp(now), ...(cache && { cache }) }
        })
      const changed = await (isOpen ? write() : admission.admit(name, write))
      if (!changed) throw notFound(kind, name, { hint: 'Join the node again' })
      const { namespace, uid } = changed.value
      return {
        name,
        namespace,
        ...(body.peerPort !== undefined && { peerSecrets: services.peerTickets.secretsFor(uid) }),
      }
    },

    noteAgent({ principal: { name } }) {
      seen(name)
      const record = collections.nodes.get('', name)?.value
      if (!record) throw notFound(kind, name, { hint: 'Join the node again' })
      const { report, cache, isReady } = record
      const isSettled = report !== undefined && settledCache(collections, record, report) === cache
      return { wantsReport: !isSettled || (!isReady && presence.isOpen(name)) }
    },

    async reportVms({ principal: { name }, body: { vms, images } }) {
      seen(name)
      if (images) countImages(name, images)
      const known = await Promise.all(vms.map((report) => takeReport(name, report)))
      return { unknown: vms.filter((_, index) => !known[index]).map(({ uid }) => uid) }
    },

    findPeers: ({ principal, body }) => ({ peers: findPeers(services, principal, body) }),

    async noteBootOrder({ body: { content, chunks } }) {
      return { chunks: [...(await recordBootOrder(services, content, chunks))] }
    },

    getBlob: ({ params: { digest } }) => blobOf(content, digest, 'Read the desired state again'),

    async openTunnel({ principal: { name }, params: { tunnel } }) {
      const server = tunnels.elsewhere(tunnel)
      const found = server === undefined ? undefined : peers?.servers.find(server)
      if (!peers || !found) return tunnels.answer(name, tunnel)
      // A load balancer may have sent the node to another server than the one of the tunnel.
      const path = openServerTunnel.path
        .replace('{node}', encodeURIComponent(name))
        .replace('{tunnel}', encodeURIComponent(tunnel))
      const farSide = await peers.calls.dial(found, path).catch(() => undefined)
      if (!farSide) throw notFound('tunnels', tunnel.slice(0, 64), { hint: 'The tunnel expired or never existed' })
      return { take: (nearSide) => pipeBoth(nearSide, farSide), drop: () => farSide.destroy() }
    },
  }
}

/** Free space changes constantly, so only a significant change counts. */
function isSimilar(before: NodeReport, after: NodeReport): boolean {
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

type Joined = ResponseOf<typeof api.joinCluster>

async function join(
  services: AgentServices,
  { token, name, publicKey }: BodyOf<typeof api.joinCluster>,
  now: Date,
): Promise<Joined | Answer<Joined>> {
  const { collections, nodeKeys } = services
  const grant = await nodeKeys.openJoinToken(token)
  if (!grant) throw badJoinToken('is not valid')
  const { namespace } = grant
  const issuedFor = (space: ReturnType<typeof checkNamespace>): typeof space => {
    // The token was issued for an earlier namespace of the same name.
    if (grant.issuedAt.getTime() < Date.parse(space.value.createdAt)) throw badJoinToken('is not valid')
    return space
  }
  issuedFor(checkNamespace(services, namespace))
  const causes = nodeProblems(name, publicKey)
  if (causes.length > 0) throw invalid('nodes', causes, 'Use at most 63 lowercase letters, digits, dashes and periods')
  const known = (record: NodeRecord): Joined => ({
    name,
    namespace: record.namespace,
    uid: record.uid,
    ...defined({ joinToken: grant.id }),
  })
  const expected = collections.expectedNodes.get('', name)
  const place = expected?.value.namespace ?? namespace
  if (place !== namespace && collections.namespaces.get('', place)) {
    const hint = `Use a token of that namespace, or change it: svc3 node join-token --name ${name} -n ${namespace}`
    throw conflict('nodes', name, `is expected in namespace ${place}`, hint)
  }
  const record: NodeRecord = {
    name,
    namespace,
    uid: randomUUID(),
    createdAt: timestamp(now),
    publicKey,
    tags: [...new Set([...(grant.tags ?? []), ...(expected?.value.orkaTags ?? [])])].toSorted(),
    isCordoned: false,
    isReady: false,
  }
  const joined = await joinOnce(services, grant, { name, publicKey })
  const settle = async (): Promise<void> => {
    await joined()
    // Tags that were set in the meantime stay expected.
    if (expected) await collections.expectedNodes.delete(expected).catch(ignoreLost)
  }
  try {
    const entry = await writeInside(services, namespace, (space) =>
      collections.nodes.create('', name, record, [issuedFor(space)]),
    )
    await settle()
    return known(entry.value)
  } catch (error) {
    const found = collections.nodes.get('', name)?.value
    if (!isFault(error, 'AlreadyExists') || !found) throw error
    if (found.publicKey !== publicKey) throw otherKey(found)
    await settle()
    return new Answer(200, known(found), true)
  }
}

const nodeProblems = (name: string, publicKey: string): Cause[] => [
  ...invalidIf(!isNodeName(name), 'name', `Invalid node name "${name.slice(0, 100)}"`),
  ...invalidIf(!parseNodeKey(publicKey), 'publicKey', 'publicKey is not an Ed25519 key'),
]

const otherKey = ({ name, namespace }: NodeRecord): ApiError =>
  new ApiError('AlreadyExists', `Node ${name} already exists with another key`, {
    kind: 'nodes',
    name,
    hint: `Use another name for this host, or remove the old node: svc3 node delete ${name} -n ${namespace}`,
  })
