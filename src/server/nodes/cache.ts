// The image cache of a node. Its record has the desired images (`pins`) and those to delete (`drops`), which are sent to
// its agent; the agent's reports have the status.
import type { CachedCopy, CachedImage, DesiredCache, NodeCache as ShownCache } from '../../api/images/image-cache.ts'
import type { NodeReport } from '../../api/nodes/node-report.ts'
import { defined } from '../../platform/defined.ts'
import { normalReference } from '../../rules/image-reference.ts'
import { diskSize, roughSize } from '../../rules/sizes.ts'
import type { Collections } from '../../store/records/collections.ts'
import {
  cacheKeyOf,
  type ImageRecord,
  type NodeCacheRecord,
  type NodeRecord,
} from '../../store/records/fleet-records.ts'
import { isOnNode } from '../../store/records/node-vms.ts'
import type { Change, Entry } from '../../store/store.ts'
import { type Listing, listing } from '../lists/listing.ts'
import type { Fleet } from './fleet.ts'

type Records = Pick<Collections, 'nodes' | 'images' | 'nodeVms'>

export const noCache: NodeCacheRecord = { pins: {}, drops: [] }

/** What a node's agent is sent, without images that do not exist or have no content yet. */
export function desiredCache({ images: known }: Pick<Records, 'images'>, node: NodeRecord | undefined): DesiredCache {
  const { pins, drops } = node?.cache ?? noCache
  const images = Object.entries(pins).flatMap(([name, { pulled }]) => {
    const reference = pulled?.reference
    const image = known.get('', name)?.value
    if (reference === undefined && (!image || cacheKeyOf(image) === undefined)) return []
    return [{ name, ...defined({ recipe: image?.recipe, content: image?.content, reference }) }]
  })
  return { images, drops: [...drops] }
}

/** Sends agents every change of their desired images. Returns how to stop. */
export function sendCaches(collections: Records, fleet: Fleet): () => void {
  const send = (node: NodeRecord): void => {
    if (fleet.isOpen(node.name)) fleet.sendCache(node.name, desiredCache(collections, node))
  }
  const stopNodes = collections.nodes.view.subscribe((changes) => {
    for (const change of changes) {
      const after = change.type === 'put' ? change.entry.value : undefined
      if (after && after.cache !== change.previous?.value.cache && !isSame(after.cache, change.previous?.value.cache))
        send(after)
    }
  })
  // After a commit, nodes that should have the image get its new content.
  const stopImages = collections.images.view.subscribe((changes) => {
    const changed = new Set(withOtherContent(changes).map(({ name }) => name))
    if (changed.size === 0) return
    for (const { value } of collections.nodes.view.range())
      if (Object.keys(value.cache?.pins ?? {}).some((name) => changed.has(name))) send(value)
  })
  return () => {
    stopNodes()
    stopImages()
  }
}

/** The images whose content changed, as they were and as they are now. */
const withOtherContent = (changes: readonly Change<ImageRecord>[]): ImageRecord[] =>
  changes.flatMap((change) => {
    const before = change.previous?.value
    const after = change.type === 'put' ? change.entry.value : undefined
    if ((before && cacheKeyOf(before)) === (after && cacheKeyOf(after))) return []
    return [before, after].filter((image) => image !== undefined)
  })

const isSame = (one: NodeCacheRecord = noCache, other: NodeCacheRecord = noCache): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** Removes drops that the node has carried out or that its VMs need, and pins of images that were deleted. */
export function settledCache(
  collections: Records,
  record: NodeRecord,
  report: NodeReport,
): NodeCacheRecord | undefined {
  const { cache } = record
  if (!cache) return undefined
  const there = new Set(report.cache?.map(({ key }) => key))
  const used = new Set(cache.drops.length > 0 ? vmsOn(collections, record).map(({ key }) => key) : [])
  const drops = cache.drops.filter((key) => there.has(key) && !used.has(key))
  const pins = Object.entries(cache.pins).filter(([name, { pulled }]) => pulled ?? collections.images.get('', name))
  const isUnchanged = drops.length === cache.drops.length && pins.length === Object.keys(cache.pins).length
  return isUnchanged ? cache : { pins: Object.fromEntries(pins), drops }
}

/** The VMs on a node, each with the key of the image copy that it needs. */
export function vmsOn({ nodeVms, images }: Records, { name: node, report }: NodeRecord): { vm: string; key: string }[] {
  return [...nodeVms.on(node)].flatMap(({ value: record }) => {
    if (!isOnNode(record)) return []
    const { namespace, name } = record
    const image = images.get('', record.shape.image)?.value
    const { imageReference = '' } = record
    const copy = report?.cache?.find(({ pulled }) => pulled && digestIn(pulled.reference) === digestIn(imageReference))
    const key = record.imageContent ?? (copy ? copy.key : image && cacheKeyOf(image))
    return key === undefined ? [] : [{ vm: `${namespace}/${name}`, key }]
  })
}

export type Cacheable = Pick<ImageRecord, 'name' | 'architecture' | 'sizeBytes' | 'content' | 'recipe'> & {
  /** Of an image in a registry, which has no record in the cluster: all that its name resolved to. */
  readonly digests?: ReadonlySet<string>
}

/** The digest in a reference or in the key of a pull. Returns another key unchanged. */
const digestIn = (text: string): string => text.slice(Math.max(0, text.lastIndexOf('sha256:')))

/** Images of registries that nodes have pulled or are to fetch, by the names that users gave them. */
export function pulledOn(nodes: readonly NodeRecord[]): Cacheable[] {
  const found = new Map<string, Cacheable & { readonly digests: Set<string> }>()
  for (const { report, cache } of nodes) {
    const add = (name: string, { reference, sizeBytes }: { reference: string; sizeBytes: number }): void => {
      const digests = (found.get(name)?.digests ?? new Set()).add(digestIn(reference))
      if (report) found.set(name, { name, architecture: report.architecture, sizeBytes, digests })
    }
    for (const { pulled } of report?.cache ?? [])
      if (pulled) for (const name of pulled.names ?? [pulled.reference]) add(normalReference(name), pulled)
    for (const [name, { pulled }] of Object.entries(cache?.pins ?? {})) if (pulled) add(name, pulled)
  }
  return [...found.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/** The state of an image on a node, and the key of its copy. Undefined if it is neither present nor desired. */
export function copyOn(
  node: NodeRecord,
  image: Pick<Cacheable, 'name'> & Partial<Cacheable>,
): (CachedCopy & { readonly key?: string }) | undefined {
  const pinned = Object.hasOwn(node.cache?.pins ?? {}, image.name)
  const pin = node.cache?.pins[image.name]?.pulled
  const own = pin && new Set([digestIn(pin.reference), `pull:${pin.reference}`])
  const wanted: ReadonlySet<string | undefined> = own ?? image.digests ?? new Set([cacheKeyOf(image)])
  // A pin that is being fetched is not shown by the fetch of another, from another registry.
  const copy = node.report?.cache?.find(
    ({ key, pulled }) => wanted.has(key) || wanted.has(digestIn(pulled?.reference ?? (pin ? '' : key))),
  )
  if (!copy) return pinned ? { node: node.name, state: 'Pending', pinned } : undefined
  const { key, state, percent, bytes, usedAt, problem } = copy
  return {
    key,
    node: node.name,
    state: node.cache?.drops.includes(key) ? 'Removing' : state,
    ...(percent !== undefined && state === 'Fetching' && { progress: { percent } }),
    pinned,
    ...(bytes !== undefined && { bytes, spaceUsed: roughSize(bytes) }),
    ...(usedAt !== undefined && { lastUsed: usedAt }),
    ...(problem !== undefined && state === 'Failed' && { errorMessage: problem }),
  }
}

export function cachedImage(image: Cacheable, nodes: readonly NodeRecord[]): CachedImage {
  return {
    name: image.name,
    type: image.architecture,
    size: diskSize(image.sizeBytes),
    nodes: nodes.map((node) => copyOn(node, image)).filter((copy) => copy !== undefined),
  }
}

/** The nodes of a namespace with their images. An item changes with the report of its node and the content of its images. */
export function listedCaches({ nodes, images }: Records, namespace: string): Listing<ShownCache> {
  const item = ({ value, rev }: Entry<NodeRecord>): ShownCache => {
    const known: Cacheable[] = images.view.range().map((image) => image.value)
    const copies = [...known, ...pulledOn([value])].flatMap((image) => {
      const copy = copyOn(value, image)
      if (!copy) return []
      const { node: _, ...rest } = copy
      return [{ image: image.name, ...rest }]
    })
    return { name: value.name, namespace: value.namespace, copies, resourceVersion: rev }
  }
  return {
    ...listing(nodes, '', item, (shown) => shown.namespace === namespace),
    isDerived: true,
    extraChanges: (notify) =>
      images.view.subscribe((changes) => {
        const changed = withOtherContent(changes)
        const entries = nodes.view.range().filter(({ value }) => changed.some((image) => copyOn(value, image)))
        if (entries.length > 0) notify(entries.map(({ key }) => key))
      }),
  }
}
