// The image cache in a node's record: the desired images sent to its agent, the status from its reports, and how both
// are shown.

import type { CachedCopy, CachedImage, DesiredCache, NodeCache as ShownCache } from '../../api/images/image-cache.ts'
import type { NodeReport } from '../../api/nodes/node-report.ts'
import { diskSize, roughSize } from '../../rules/sizes.ts'
import type { Collections } from '../../store/records/collections.ts'
import {
  cacheKeyOf,
  type ImageRecord,
  type NodeCacheRecord,
  type NodeRecord,
} from '../../store/records/fleet-records.ts'
import { isOnNode } from '../../store/records/node-vms.ts'
import type { Entry } from '../../store/store.ts'
import { type Listing, listing } from '../lists/listing.ts'
import type { Fleet } from './fleet.ts'

type Records = Pick<Collections, 'nodes' | 'images' | 'nodeVms'>

export const noCache: NodeCacheRecord = { pins: {}, drops: [] }

/** The desired images sent to a node's agent. One that does not exist, or has no content yet, is left out. */
export function desiredCache({ images: known }: Pick<Records, 'images'>, node: NodeRecord | undefined): DesiredCache {
  const { pins, drops } = node?.cache ?? noCache
  const images = Object.keys(pins).flatMap((name) => {
    const image = known.get('', name)?.value
    if (!image || cacheKeyOf(image) === undefined) return []
    const { recipe, content } = image
    return [{ name, ...(recipe !== undefined && { recipe }), ...(content !== undefined && { content }) }]
  })
  return { images, drops: [...drops] }
}

/** Follows the records: agents are notified of every change. Returns how to stop. */
export function sendCaches(collections: Records, fleet: Fleet): () => void {
  const tell = (node: NodeRecord): void => {
    if (fleet.isOpen(node.name)) fleet.sendCache(node.name, desiredCache(collections, node))
  }
  const stopNodes = collections.nodes.view.subscribe((changes) => {
    for (const change of changes) {
      const after = change.type === 'put' ? change.entry.value : undefined
      if (after && after.cache !== change.previous?.value.cache && !isSame(after.cache, change.previous?.value.cache))
        tell(after)
    }
  })
  // A commit: nodes with the image desired are to get the new content.
  const stopImages = collections.images.view.subscribe((changes) => {
    const changed = new Set<string>()
    for (const change of changes) {
      const before = change.previous?.value
      const after = change.type === 'put' ? change.entry.value : undefined
      const isOther = (before && cacheKeyOf(before)) !== (after && cacheKeyOf(after))
      const name = (after ?? before)?.name
      if (isOther && name !== undefined) changed.add(name)
    }
    if (changed.size === 0) return
    for (const { value } of collections.nodes.view.range())
      if (Object.keys(value.cache?.pins ?? {}).some((name) => changed.has(name))) tell(value)
  })
  return () => {
    stopNodes()
    stopImages()
  }
}

const isSame = (one: NodeCacheRecord = noCache, other: NodeCacheRecord = noCache): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** What is left to do once a node has reported: drops that are gone go, and so do pins of images that are no more. */
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
  const pins = Object.entries(cache.pins).filter(([name]) => collections.images.get('', name) !== undefined)
  const isUnchanged = drops.length === cache.drops.length && pins.length === Object.keys(cache.pins).length
  return isUnchanged ? cache : { pins: Object.fromEntries(pins), drops }
}

/** VMs that the node has, with the copies that they need there. */
export function vmsOn({ nodeVms, images }: Records, { name: node, report }: NodeRecord): { vm: string; key: string }[] {
  return [...nodeVms.on(node)].flatMap(({ value: record }) => {
    if (!isOnNode(record)) return []
    const { namespace, name } = record
    const image = images.get('', record.shape.image)?.value
    const { imageReference } = record
    const pulled = imageReference && report?.cache?.find((copy) => copy.pulled?.reference === imageReference)
    const key = record.imageContent ?? (pulled ? pulled.key : image && cacheKeyOf(image))
    return key === undefined ? [] : [{ vm: `${namespace}/${name}`, key }]
  })
}

/** An image, as far as copies of it go. */
export type Cacheable = Pick<ImageRecord, 'name' | 'architecture' | 'sizeBytes' | 'content' | 'recipe'>

/** Images that nodes have pulled from registries: the cluster has no record of them. */
export function pulledOn(nodes: readonly NodeRecord[]): Cacheable[] {
  const found = new Map<string, Cacheable>()
  for (const { report } of nodes)
    for (const { key: content, pulled } of report?.cache ?? []) {
      if (!report || !pulled) continue
      const { reference: name, sizeBytes } = pulled
      found.set(name, { name, architecture: report.architecture, sizeBytes, content })
    }
  return [...found.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/** The state of an image on a node; undefined where it is neither present nor desired. */
export function copyOn(node: NodeRecord, image: Cacheable): CachedCopy | undefined {
  const key = cacheKeyOf(image)
  const pinned = Object.hasOwn(node.cache?.pins ?? {}, image.name)
  const copy = node.report?.cache?.find((each) => each.key === key)
  if (!copy) return pinned ? { node: node.name, state: 'Pending', pinned } : undefined
  const { state, percent, bytes, usedAt, problem } = copy
  return {
    node: node.name,
    state: key !== undefined && node.cache?.drops.includes(key) ? 'Removing' : state,
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

/** The nodes of a namespace with what each has: when its report changes, and when an image of it becomes another one. */
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
        const changed = changes.flatMap(({ previous, ...change }) => {
          const [before, after] = [previous?.value, change.type === 'put' ? change.entry.value : undefined]
          return (before && cacheKeyOf(before)) === (after && cacheKeyOf(after)) ? [] : [before, after]
        })
        const isTold = ({ value }: Entry<NodeRecord>): boolean =>
          changed.some((image) => image !== undefined && copyOn(value, image) !== undefined)
        const keys = nodes.view
          .range()
          .filter(isTold)
          .map(({ key }) => key)
        if (keys.length > 0) notify(keys)
      }),
  }
}
