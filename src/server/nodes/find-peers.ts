// Finds nodes from which a node can fetch content: all of an image from nodes that have it, or a chunk from a node that
// is fetching the same image.
import type { findPeers as findPeersOperation, Peer } from '../../api/nodes/agent.ts'
import type { BodyOf } from '../../api/operation.ts'
import type { AgentPrincipal } from '../../auth/principal.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { NodeRecord } from '../../store/records/fleet-records.ts'
import type { ChunkHolders } from './chunk-holders.ts'
import type { PeerTickets } from './peer-tickets.ts'
import type { PresenceTracker } from './presence.ts'

export interface PeerServices {
  readonly collections: Collections
  readonly chunkHolders: ChunkHolders
  readonly peerTickets: PeerTickets
  readonly presence: PresenceTracker
}

/** Enough to share the load and few enough to try. */
const maxPeers = 4

export function findPeers(
  { collections, chunkHolders, peerTickets, presence }: PeerServices,
  { name, uid: ownUid }: AgentPrincipal,
  { content, chunk, without = [] }: BodyOf<typeof findPeersOperation>,
): Peer[] {
  const canServe = (node: NodeRecord): boolean =>
    node.report?.peerPort !== undefined && node.name !== name && presence.isOpen(node.name)
  const peerOf = ({ name: node, uid, report }: NodeRecord): Peer => {
    const ticket = peerTickets.issue(uid, ownUid)
    return { node, uid, ip: report?.ip ?? '', port: report?.peerPort ?? 0, ...ticket }
  }
  if (chunk === undefined) {
    const hasContent = ({ report }: NodeRecord): boolean =>
      report?.cache?.some(({ key, state }) => key === content && state === 'Ready') === true
    const nodes = collections.nodes.view.range().map(({ value }) => value)
    return shuffled(nodes.filter((node) => hasContent(node) && canServe(node)))
      .slice(0, maxPeers)
      .map(peerOf)
  }
  // Called for every chunk, so it must not look at all nodes.
  const recordOf = (node: string): NodeRecord | undefined => collections.nodes.get('', node)?.value
  const isUsable = (node: string): boolean => {
    const record = recordOf(node)
    return record !== undefined && canServe(record)
  }
  const assigned = chunkHolders.assign({ content, chunk, node: name }, { without: new Set(without), isUsable })
  const record = assigned === undefined ? undefined : recordOf(assigned)
  return record ? [peerOf(record)] : []
}

const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map((item) => ({ item, order: Math.random() }))
    .toSorted((one, other) => one.order - other.order)
    .map(({ item }) => item)
