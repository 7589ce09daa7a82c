// Handlers of the image cache. They change the desired images in the records of nodes, which agents carry out.
import { ApiError, badRequest, conflict } from '../../../api/errors.ts'
import type * as api from '../../../api/images/image-cache.ts'
import type { NodeResult, NodeSelection } from '../../../api/images/image-cache.ts'
import { displayName } from '../../../auth/principal.ts'
import { timestamp } from '../../../platform/clock.ts'
import { isImageReference } from '../../../rules/image-reference.ts'
import { sizeText } from '../../../rules/sizes.ts'
import type { Collections } from '../../../store/records/collections.ts'
import {
  type CachePin,
  cacheKeyOf,
  type ImageRecord,
  type NodeCacheRecord,
  type NodeRecord,
} from '../../../store/records/fleet-records.ts'
import { changeNode } from '../../../store/records/vms.ts'
import { existingIn } from '../../gate/existing.ts'
import { Answer } from '../../http/answer.ts'
import { type Cacheable, cachedImage, copyOn, listedCaches, noCache, pulledOn, vmsOn } from '../../nodes/cache.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type RegistryServices, referenceOf } from '../../remotes/registries.ts'
import { findRegistryImage } from '../../remotes/registry-images.ts'

const maxPins = 100

type Verdict = Omit<NodeResult, 'node'> & { readonly cache?: NodeCacheRecord }

export function imageCache(services: RegistryServices & { readonly collections: Collections }): HandlersOf<typeof api> {
  const { collections } = services
  const { images, nodes } = collections

  /** An image of the cluster, or one of a registry that a node has or is to fetch. */
  const cached = (namespace: string, name: string): Cacheable => {
    if (!isImageReference(name)) return existing(name)
    const { text, digest = '' } = referenceOf(name, 'pull')
    const found = pulledOn(nodesOf(namespace)).find((each) => each.name === text || each.digests?.has(digest))
    if (!found) return existing(text)
    return digest === '' ? found : { ...found, name: text, digests: new Set([digest]) }
  }
  const existing = (name: string): ImageRecord => existingIn(images, 'images')('', name).value
  const nodesOf = (namespace: string): NodeRecord[] =>
    nodes.view
      .range()
      .map(({ value }) => value)
      .filter((node) => node.namespace === namespace)

  /** Includes unknown names, each of which gets a result. Tags and `all` select only nodes that `isCandidate`. */
  const chosen = (
    namespace: string,
    { nodes: named = [], tags = [], all = false }: NodeSelection,
    isCandidate: (node: NodeRecord) => boolean,
  ): string[] => {
    const found = nodesOf(namespace).filter((node) => all || isTagged(node, tags))
    return [...new Set([...named, ...found.filter(isCandidate).map(({ name }) => name)])].toSorted()
  }

  async function onEach(
    namespace: string,
    names: readonly string[],
    decide: (node: NodeRecord) => Verdict,
  ): Promise<Answer<{ items: NodeResult[] }>> {
    const items: NodeResult[] = []
    for (const name of names) {
      let verdict: Verdict = missing
      await changeNode(collections, name, (node) => {
        verdict = node.namespace === namespace ? decide(node) : missing
        return verdict.cache && { ...node, cache: verdict.cache }
      })
      const { code, result, message } = verdict
      items.push({ node: name, code, result, message })
    }
    return new Answer(
      207,
      { items },
      items.every(({ code }) => code !== 202),
    )
  }

  return {
    listCachedImages({ params: { namespace } }) {
      const inNamespace = nodesOf(namespace)
      const known: Cacheable[] = images.view.range().map(({ value }) => value)
      const all = [...known, ...pulledOn(inNamespace)].map((image) => cachedImage(image, inNamespace))
      return { items: all.filter((image) => image.nodes.length > 0) }
    },

    listNodeCaches: ({ params: { namespace } }) => listedCaches(collections, namespace),

    getCachedImage: ({ params: { namespace, image } }) => cachedImage(cached(namespace, image), nodesOf(namespace)),

    async addCachedImage({ params: { namespace, image: name }, body, principal, now }) {
      checkSelection(body)
      const reference = isImageReference(name) ? referenceOf(name, 'pull') : undefined
      const found = reference && (await findRegistryImage(services, reference, { namespace }))
      const image: Cacheable = found ? { ...found, name: reference.text } : existing(name)
      if (!found && cacheKeyOf(image) === undefined)
        throw conflict(
          'images',
          name,
          `has no content yet: it is ${existing(name).state ?? 'Ready'}`,
          `Run svc3 image list ${name} -n ${namespace} to see its progress`,
        )
      const pulled = found && { reference: found.pinned, sizeBytes: found.sizeBytes, storedBytes: found.storedBytes }
      const pin = { by: displayName(principal), at: timestamp(now), ...(pulled && { pulled }) }
      const names = chosen(namespace, body, ({ report }) => report?.architecture === image.architecture)
      if (names.length === 0) throw noNode(namespace, image, body)
      return onEach(namespace, names, (node) => additionOn(collections, node, image, pin))
    },

    removeCachedImage: ({ params: { namespace, image }, body }) => remove(namespace, image, body),

    removeFromImageCache: ({ params: { namespace }, body }) => remove(namespace, body.image, body),
  }

  function remove(namespace: string, name: string, selection: NodeSelection) {
    checkSelection(selection)
    const image = cached(namespace, name)
    const names = chosen(namespace, selection, (node) => copyOn(node, image) !== undefined)
    return onEach(namespace, names, (node) => removalOn(collections, node, image))
  }
}

function additionOn({ images }: Collections, node: NodeRecord, image: Cacheable, pin: CachePin): Verdict {
  const { name } = image
  const refusal = unfit(node, image, pin)
  if (refusal) return refusal
  const { pins, drops } = node.cache ?? noCache
  const after = { ...node, cache: { pins: { ...pins, [name]: pin }, drops } }
  const { state, key } = copyOn(after, image) ?? {}
  // A tag that was moved is pinned again.
  if (Object.hasOwn(pins, name) && pins[name]?.pulled?.reference === pin.pulled?.reference)
    return unchanged(state === 'Ready' ? 'Already cached' : 'Already being fetched')
  if (Object.keys(after.cache.pins).length > maxPins)
    return refused('NoSpace', `Already caches ${maxPins} images, the maximum; remove some`)
  const quota = sizeText(node.report?.imageSpace?.quotaBytes ?? 0)
  const needed = pinnedBytes(images, after)
  if (needed > (node.report?.imageSpace?.quotaBytes ?? Infinity))
    return refused(
      'NoSpace',
      `Cached images would take ${sizeText(needed)}, the quota is ${quota}; remove some, or raise --image-quota of the agent`,
    )
  const cache = { ...after.cache, drops: drops.filter((each) => each !== key) }
  return accepted(state === 'Ready' ? 'Already on the node; now kept' : fetching(node), cache)
}

function removalOn(collections: Collections, node: NodeRecord, image: Cacheable): Verdict {
  const { pins, drops } = node.cache ?? noCache
  const copy = copyOn(node, image)
  const { key } = copy ?? {}
  if (!copy) return unchanged('Not on the node')
  if (copy.state === 'Removing') return unchanged('Already being removed')
  const users = vmsOn(collections, node).flatMap((each) => (each.key === key ? [each.vm] : []))
  if (users.length > 0) return refused('InUse', `VMs on the node use the image: ${users.join(', ')}`.slice(0, 1_000))
  const { [image.name]: _, ...others } = pins
  const sharers = Object.keys(others).filter(
    (other) => key !== undefined && keyOf(collections.images, node, other) === key,
  )
  if (sharers.length > 0) {
    const message = `Kept for ${sharers.join(', ')}, which has the same content`
    return copy.pinned ? accepted(message, { pins: others, drops }) : refused('InUse', message)
  }
  const hasCopy = key !== undefined && !key.startsWith('pull:')
  return accepted(removing(node), { pins: others, drops: hasCopy ? [...drops, key] : drops })
}

const keyOf = (images: Collections['images'], node: NodeRecord, name: string): string | undefined =>
  cacheKeyOf(images.get('', name)?.value ?? {}) ?? copyOn(node, { name })?.key

/** The space of pinned images on a node: as reported, or at least the size of their content. */
function pinnedBytes(images: Collections['images'], node: NodeRecord): number {
  const bytes = new Map<string, number>()
  for (const [name, { pulled }] of Object.entries(node.cache?.pins ?? {})) {
    const image = images.get('', name)?.value
    const copy = copyOn(node, image ?? { name })
    const key = keyOf(images, node, name) ?? pulled?.reference
    if (key !== undefined) bytes.set(key, copy?.bytes ?? pulled?.storedBytes ?? image?.spaceUsedBytes ?? 0)
  }
  return [...bytes.values()].reduce((sum, each) => sum + each, 0)
}

const isTagged = (node: NodeRecord, tags: readonly string[]): boolean =>
  tags.length > 0 && tags.every((tag) => node.tags.includes(tag))

function checkSelection({ nodes = [], tags = [], all = false }: NodeSelection): void {
  if (all || nodes.length > 0 || tags.length > 0) return
  const message = 'Specify nodes, tags or all'
  const advice = 'Send {"nodes": ["NAME"]}, {"tags": ["TAG"]} or {"all": true}'
  throw badRequest([{ field: 'nodes', reason: 'FieldValueRequired', message }], advice)
}

function noNode(namespace: string, { architecture }: Cacheable, { tags = [], all }: NodeSelection): ApiError {
  const what = all ? '' : ` with tag ${tags.join(' and ').slice(0, 200)}`
  return new ApiError('NotFound', `No ${architecture} node${what} found: node not found in ${namespace}`, {
    kind: 'nodes',
    hint: `Run svc3 node list -n ${namespace} -o wide to see all nodes and tags`,
  })
}

const missing: Verdict = { code: 404, result: 'NotFound', message: 'Node not found in the namespace' }
const refused = (result: NodeResult['result'], message: string): Verdict => ({ code: 409, result, message })
const accepted = (message: string, cache: NodeCacheRecord): Verdict => ({
  code: 202,
  result: 'Accepted',
  message,
  cache,
})
const unchanged = (message: string): Verdict => ({ code: 200, result: 'Unchanged', message })
const fetching = ({ isReady }: NodeRecord): string =>
  isReady ? 'Fetching' : 'The node is offline; fetched when it is back'
const removing = ({ isReady }: NodeRecord): string =>
  isReady ? 'Removing' : 'The node is offline; removed when it is back'

function unfit({ report }: NodeRecord, image: Cacheable, { pulled }: CachePin): Verdict | undefined {
  if (!report) return refused('NotPossible', 'The agent has not reported yet; try again')
  if (report.architecture !== image.architecture) {
    const message = `The node runs ${report.architecture} VMs, the image is ${image.architecture}`
    return { code: 422, result: 'WrongArchitecture', message }
  }
  const isAble = pulled ? report.takesReferences : report.cache
  return isAble ? undefined : refused('NotPossible', 'The agent is too old; update it')
}
