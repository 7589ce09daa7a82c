// The server's side of an agent: joining, tokens, the stream of wishes, and what it reports.
import { randomUUID } from 'node:crypto'
import type * as api from '../../api/agent.ts'
import type { NodeReport, VmReport } from '../../api/agent.ts'
import { ApiError, invalid, notFound } from '../../api/errors.ts'
import { parseNodeKey } from '../../auth/node-keys.ts'
import { digestPattern } from '../../images/format.ts'
import { timestamp } from '../../platform/clock.ts'
import { isNodeName } from '../../rules/names.ts'
import type { NodeRecord } from '../../store/fleet-records.ts'
import { ignoreLost, isFault } from '../../store/store.ts'
import { changeNode, changeVm, forgetVm, isFailedDeployment, release } from '../../store/vms.ts'
import type { Download } from '../downloads.ts'
import { heartbeatSeconds } from '../fleet.ts'
import { Answer, type HandlersOf } from '../handlers.ts'
import { checkNamespace } from '../namespace.ts'
import { mergeReport } from '../reports.ts'
import type { Services } from '../services.ts'
import { wishesFor } from '../wishes.ts'

const kind = 'nodes'

export function agent(services: Services): HandlersOf<typeof api> {
  const { collections, content, fleet, nodeKeys, tokens, tunnels, clock, log } = services

  /** Nothing new: undefined. `removed` ends the record. */
  async function take(node: string, report: VmReport): Promise<boolean> {
    const { namespace, name, uid } = report
    const entry = collections.vms.get(namespace, name)
    if (entry?.value.uid !== uid || entry.value.place?.node !== node) return false
    if (report.power === 'removed') {
      if (entry.value.wish.power === 'deleted') await forgetVm(collections, entry.key, uid)
      return true
    }
    const merged = await changeVm(collections, entry.key, uid, (record) =>
      record.place?.node === node ? mergeReport(record, report, clock.now()) : undefined,
    )
    // A deployment that failed and that nobody waits for is shown, but has nothing of the node any more.
    if (merged && isFailedDeployment(merged.value)) await release(collections, node, uid)
    return merged !== undefined
  }

  return {
    async joinCluster({ body: { token, name, publicKey }, now }) {
      const namespace = await nodeKeys.joinedNamespace(token)
      if (namespace === undefined)
        throw new ApiError('Unauthorized', 'Unauthorized: the join token is not valid', {
          hint: 'svc3 node join-token makes a new one',
        })
      checkNamespace(services, namespace)
      const causes = [
        ...(isNodeName(name) ? [] : [wrong('name', `"${name.slice(0, 100)}" is not a name for a node`)]),
        ...(parseNodeKey(publicKey) ? [] : [wrong('publicKey', 'publicKey is not an Ed25519 key')]),
      ]
      if (causes.length > 0)
        throw invalid(kind, causes, 'use lowercase letters, digits, dashes and periods, at most 63')
      const known = (record: NodeRecord) => ({ name, namespace: record.namespace, uid: record.uid })
      const record: NodeRecord = {
        name,
        namespace,
        uid: randomUUID(),
        createdAt: timestamp(now),
        publicKey,
        tags: [],
        isCordoned: false,
        isReady: false,
        allocations: {},
      }
      try {
        const entry = await collections.nodes.create('', name, record)
        try {
          checkNamespace(services, namespace)
        } catch (error) {
          await collections.nodes.delete(entry).catch(ignoreLost)
          throw error
        }
        return known(entry.value)
      } catch (error) {
        const found = collections.nodes.get('', name)?.value
        if (!isFault(error, 'AlreadyExists') || !found) throw error
        if (found.publicKey === publicKey) return new Answer(200, known(found), true)
        throw new ApiError('AlreadyExists', `a node "${name}" exists already, with another key`, {
          kind,
          name,
          hint: 'give this host another name, or remove the old node: svc3 node delete',
        })
      }
    },

    async issueAgentToken({ body: { name, at, signature } }) {
      const node = collections.nodes.get('', name)?.value
      if (!node || !nodeKeys.isSignedBy(node.publicKey, { name, at, signature }))
        throw new ApiError('Unauthorized', `Unauthorized: "${name.slice(0, 100)}" is not a node with that key`, {
          hint: 'was it removed? join again with a new token; is its clock right?',
        })
      const { token, expiresAt } = await tokens.issue({ kind: 'agent', name, uid: node.uid })
      return { token, expiresAt: timestamp(expiresAt ?? clock.now()) }
    },

    async openAgentStream({ principal: { name }, signal, now }) {
      if (!collections.nodes.get('', name)?.value.report)
        throw new ApiError('Conflict', `node "${name}" has not reported yet`, { kind, name, hint: 'report first' })
      await changeNode(collections, name, (record) =>
        record.isReady ? undefined : { ...record, isReady: true, lastSeenAt: timestamp(now) },
      )
      log.debug('an agent is connected', { node: name })
      const hello = () => ({ type: 'HELLO' as const, ...wishesFor(services, name), heartbeatSeconds })
      return fleet.open(name, hello, signal)
    },

    async reportNode({ principal: { name }, body, now }) {
      fleet.seen(name)
      const isOpen = fleet.isOpen(name)
      const changed = await changeNode(collections, name, (record) => {
        const isSame = record.report !== undefined && saysTheSame(record.report, body)
        if (isSame && (record.isReady || !isOpen)) return undefined
        return { ...record, report: body, isReady: record.isReady || isOpen, lastSeenAt: timestamp(now) }
      })
      if (!changed) throw notFound(kind, name, 'join again')
      return { name, namespace: changed.value.namespace }
    },

    async reportVms({ principal: { name }, body: { vms } }) {
      fleet.seen(name)
      const known = await Promise.all(vms.map((report) => take(name, report)))
      return { unknown: vms.filter((_, index) => !known[index]).map(({ uid }) => uid) }
    },

    async getBlob({ params: { digest } }) {
      const bytes = digestPattern.test(digest) ? await content.size(digest) : undefined
      if (bytes === undefined) throw notFound('blobs', digest.slice(0, 80), 'ask again for what is wanted')
      // The whole is checked while it is read; its parts, by whoever puts them together.
      const read: Download['read'] = (start, end) =>
        start === 0 && end === bytes ? content.open(digest) : content.open(digest, { start, end })
      return { name: digest, bytes, tag: digest, read }
    },

    openTunnel: ({ principal: { name }, params: { tunnel } }) => tunnels.answer(name, tunnel),
  }
}

const wrong = (field: string, message: string) => ({ field, reason: 'FieldValueInvalid', message })

/** Free space moves all the time: only a real change is worth a write. */
function saysTheSame(before: NodeReport, after: NodeReport): boolean {
  const { diskFreeGb: was, ...rest } = before
  const { diskFreeGb: is, ...next } = after
  return Math.abs(was - is) <= Math.max(1, was * 0.02) && JSON.stringify(rest) === JSON.stringify(next)
}
