// Handlers of nodes.
import { type ApiError, alreadyExists, invalid, invalidField, notFound, success } from '../../../api/errors.ts'
import type * as api from '../../../api/nodes/nodes.ts'
import type { Node } from '../../../api/nodes/nodes.ts'
import type { NodeKeys } from '../../../auth/node-keys.ts'
import { timestamp } from '../../../platform/clock.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { encodeJoinString } from '../../../rules/join-string.ts'
import { isNodeName, isTag, realNamespace } from '../../../rules/names.ts'
import { hasExpired } from '../../../rules/retention.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { ExpectedNodeRecord, NodeRecord } from '../../../store/records/fleet-records.ts'
import { isOnNode } from '../../../store/records/node-vms.ts'
import { changeNode, removeVm, withoutMark } from '../../../store/records/vms.ts'
import type { Entry, Precondition, Store } from '../../../store/store.ts'
import type { Peers } from '../../cluster/server-calls.ts'
import type { Settings } from '../../config/settings.ts'
import { checkNamespace, writeInside } from '../../gate/namespace.ts'
import { listing } from '../../lists/listing.ts'
import { assertEmpty, assertMarked, seeAllVms, whileEmpty } from '../../nodes/empty-node.ts'
import { nodeView } from '../../nodes/node-view.ts'
import type { Tunnels } from '../../nodes/tunnels.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import type { Certificates } from '../../tls/certificates.ts'

const kind = 'nodes'
const joinTokenSeconds = 3_600
const maxJoinSeconds = 30 * 86_400

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
        // The request may be repeated, because its response was lost in a crash.
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
    return view(changed)
  }

  /** Expects a host, also if it was expected elsewhere or with other tags. */
  function expect(record: ExpectedNodeRecord): Promise<unknown> {
    const { name, namespace } = record
    if (!isNodeName(name)) throw invalid(kind, [invalidField('node', `Invalid node name "${name.slice(0, 100)}"`)])
    const known = collections.nodes.get('', name)?.value
    if (known) throw alreadyExists(kind, name, { namespace: known.namespace, hint: 'To tag it, run svc3 node tag' })
    const all = collections.expectedNodes
    return writeInside(services, namespace, (space) => all.change(all.key('', name), () => record, [space]))
  }

  const view = (entry: Entry<NodeRecord>): Node => nodeView(collections, entry)
  const keysOf = (names: Iterable<string>): string[] => [...names].map((name) => collections.nodes.key('', name))

  return {
    listNodes: ({ params }) => ({
      ...listing(collections.nodes, '', view, ({ namespace }) => namespace === params.namespace),
      isCutByPath: true,
      isDerived: true,
      extraChanges: (changed) => collections.nodeVms.subscribe((nodes) => changed(keysOf(nodes))),
      extraAfter: async (rev, signal) => keysOf(await collections.nodeVms.touchedAfter(rev, signal)),
    }),

    getNodeCharts: ({ params: { namespace, name }, query }) =>
      services.tunnels.measureNode(existing(namespace, name).value, query?.minutes),

    async tagNode({ params, body: { tag }, ...call }) {
      if (!isTag(tag)) throw badTag(tag)
      return change(params, call, (record) => ({
        ...record,
        tags: [...new Set([...record.tags, tag])].toSorted(),
      }))
    },

    untagNode: ({ params, body: { tag }, ...call }) =>
      change(params, call, (record) => {
        if (!record.tags.includes(tag))
          throw notFound('tags', tag, { hint: `Node ${record.name} has ${record.tags.join(', ') || 'no tags'}` })
        return { ...record, tags: record.tags.filter((each) => each !== tag) }
      }),

    async moveNode({ params, body, ...call }) {
      const namespace = realNamespace(body.namespace, settings.compat.namespaceAliases)
      const moved = (record: NodeRecord, mark: string | undefined) => ({
        ...withoutMark(assertMarked(record, mark)),
        namespace,
      })
      const isSame = namespace === params.namespace
      const found = collections.nodes.get('', params.name)
      const isKnown = call.requestKey !== undefined && found?.value.request?.key === call.requestKey
      // The request may be repeated, because its response was lost in a crash.
      if (found && isKnown && !isSame && found.value.namespace === namespace) return view(found)
      return writeInside(services, namespace, (space) =>
        isSame
          ? change(params, call, (record) => record)
          : whileEmpty(services, existing(params.namespace, params.name), 'moved', (mark) =>
              change(params, call, (record) => moved(record, mark), [space]),
            ),
      )
    },

    cordonNode: ({ params, ...call }) => change(params, call, (record) => ({ ...record, isCordoned: true })),
    uncordonNode: ({ params, ...call }) =>
      change(params, call, (record) => ({ ...withoutMark(record), isCordoned: false })),

    async drainNode({ params, body, ...call }) {
      const node = await change(params, call, (record) => ({ ...record, isCordoned: true }))
      if (body?.deleteVms !== true) return node
      await seeAllVms(services)
      for (const entry of [...collections.nodeVms.on(params.name)])
        if (isOnNode(entry.value)) await removeVm(collections, entry, undefined)
      return view(existing(params.namespace, params.name))
    },

    async deleteNode({ params: { namespace, name } }) {
      const expected = collections.expectedNodes.get('', name)
      if (expected?.value.namespace === namespace && !collections.nodes.get('', name)) {
        await collections.expectedNodes.change(expected.key, () => null)
        return success(`Node ${name} is no longer expected`, { kind, name })
      }
      await whileEmpty(services, existing(namespace, name), 'removed', (mark) =>
        collections.nodes.change(collections.nodes.key('', name), () => {
          assertEmpty(collections, assertMarked(existing(namespace, name).value, mark), 'removed')
          return null
        }),
      )
      return success(`Node ${name} removed`, { kind, name })
    },

    listExpectedNodes: ({ params }) => ({
      ...listing(collections.expectedNodes, '', expectedView, ({ namespace }) => namespace === params.namespace),
      isCutByPath: true,
    }),

    async createJoinToken({ params: { namespace }, body, now }) {
      checkNamespace(services, namespace)
      const { node, tags } = body ?? {}
      const bad = tags?.find((tag) => !isTag(tag))
      if (bad !== undefined) throw badTag(bad)
      const seconds = body?.duration === undefined ? joinTokenSeconds : parseDuration(body.duration)
      if (seconds === undefined || seconds < 60 || seconds > maxJoinSeconds) throw badDuration(body?.duration ?? '')
      if (node !== undefined) await expect({ name: node, namespace, orkaTags: tags ?? [], createdAt: timestamp(now) })
      const once = body?.reusable ? undefined : 'once'
      const { id, token, expiresAt } = await nodeKeys.issueJoinToken(namespace, seconds, once, tags)
      const urls = services.peers?.servers.alive().map(({ apiUrl }) => apiUrl) ?? []
      const pin = await pinOf(services)
      const join = encodeJoinString({ urls: [...new Set([...urls, services.apiUrl()])], pin, token })
      return { id, token, expiresAt: timestamp(expiresAt), join }
    },
  }
}

const expectedView = ({ value, rev }: Entry<ExpectedNodeRecord>) => ({ ...value, resourceVersion: rev })

/** Pins only a self-signed certificate, because others may be renewed with another key. */
async function pinOf({ apiUrl, certificates }: NodeServices): Promise<string | undefined> {
  if (!apiUrl().startsWith('https:')) return undefined
  const { selfSigned, publicKeyFingerprint } = (await certificates.current()).facts
  return selfSigned ? publicKeyFingerprint : undefined
}

const badTag = (tag: string): ApiError =>
  invalid(
    kind,
    [invalidField('tag', `Invalid tag "${tag.slice(0, 100)}"`)],
    'Use at most 63 letters, digits and - _ . that start and end with a letter or digit',
  )

const badDuration = (duration: string): ApiError =>
  invalid(
    kind,
    [invalidField('duration', `Invalid duration "${duration}": choose 1m to 30d`)],
    'Use a duration such as 1h',
  )
