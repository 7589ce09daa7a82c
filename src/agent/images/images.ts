// The node's copies of images and ISOs.
//
// What is concurrent. Many VMs, pins and captures use this at the same time. Work for the same copy is shared
// (single-flight.ts). Several agents of a host may share the folder: leases (leases.ts) keep them from removing what another
// uses. Peers read the store.
//
// What may die when. An agent may be killed at any time: copies and content appear by renames, so incomplete ones are never
// used and the next agent removes them; the parts of an image that were fetched stay in the store. An image that VMs run on
// while it is fetched (arrivals.ts) blocks their guests until an agent serves it again. Peers may vanish or lie: content is
// checked against its digest, and the server or registry is asked instead.
//
// What is promised. `ensure` resolves with a complete copy, which stays as long as a lease (`held`), a VM's record or a pin
// holds it. Copies and chunks together keep to the quota, unless more is in use. An image that does not fit fails without
// evicting anything.
import path from 'node:path'
import type { DesiredVm, ImageFigures } from '../../api/nodes/agent.ts'
import type { BaseImage } from '../../drivers/driver.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { openContentFolder } from '../../images/content/store.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import type { RetryPolicy } from '../../platform/retry.ts'
import type { ArrivalUser, BootOrder } from './arrival.ts'
import { Arrivals, type BeginOptions, socketFolderOf } from './arrivals.ts'
import { CacheSpace, type Space } from './cache-space.ts'
import { contentNames, findContent } from './content.ts'
import { ContentFetches, fetchedContent, type NodeContent, type OpenBlob } from './content-source.ts'
import { type Holders, noHolders } from './holders.ts'
import { type LocalCopy, markCopyUsed, packing } from './inventory.ts'
import { Leases } from './leases.ts'
import type { PeerContent } from './peers.ts'
import { ImageProviders, pullKeyOf } from './providers.ts'
import { openPulledImages, type PulledImages } from './pulled-images.ts'
import type { Recipe } from './recipes.ts'
import type { AskLogin } from './registry-image.ts'
import { type EnsureOptions, type ImageProvider, share } from './single-flight.ts'

export type VmImage = DesiredVm['image']
interface DesiredIso {
  readonly name: string
  readonly content: string
}

/** The key of an image's copy, and of its pin. The copy of an image in a registry has the key of its content instead. */
export const keyOf = ({ content, recipe, reference }: Pick<VmImage, 'content' | 'recipe' | 'reference'>): string =>
  reference === undefined ? (content ?? `recipe:${recipe ?? ''}`) : pullKeyOf(reference)

/** The key of the copy that a disk was made from. */
export const baseKeyOf = (image: VmImage, { digest }: Pick<BaseImage, 'digest'>): string =>
  image.reference === undefined ? keyOf(image) : digest

export interface Images {
  ensure(image: VmImage, options: EnsureOptions): Promise<BaseImage>
  /** Returns the complete copy, if this node has it. Always undefined for an image that is built from a recipe. */
  find(image: VmImage): Promise<BaseImage | undefined>
  /** Like `ensure`, but may resolve with an image on a socket, which is still being fetched. */
  arrive(image: VmImage, user: ArrivalUser, options: BeginOptions & EnsureOptions): Promise<BaseImage>
  /** Continues to serve an image that a VM was reading when the previous agent ended. */
  resume(image: VmImage, user: ArrivalUser, signal: AbortSignal): Promise<void>
  readonly arrivals: Pick<Arrivals, 'of' | 'idle' | 'leave' | 'list' | 'stop'>
  /** The file of an ISO, which is fetched if necessary. */
  ensureIso(iso: DesiredIso, options: EnsureOptions): Promise<string>
  names(): readonly string[]
  /** Replaces the images whose copies stay although they are unused. One in a registry has to be fetched first. */
  pin(images: readonly VmImage[]): Promise<void>
  /** Removes a copy, unless it is used or pinned. */
  drop(key: string): Promise<void>
  copies(): readonly LocalCopy[]
  /** How often a requested copy existed, and how often it did not, since the start. */
  lookups(): { readonly hits: number; readonly misses: number }
  /** Undefined for simulated nodes, whose images take no space. */
  space(): Space | undefined
  /**
   * Keeps chunks that no manifest names from being evicted until the returned function is called, for a capture with this id
   * that is being packed and delivered. `image`: the image that it is based on, which stays too.
   */
  holdContent(id: string, image?: VmImage): Promise<() => Promise<void>>
  /** Whether no other capture holds content. */
  isPackingAlone(id: string): Promise<boolean>
  /** The content that this node serves to others. */
  store(): Promise<ContentStore | undefined>
  readonly fetches: ContentFetches
  /** Counters since the start; undefined for simulated nodes. */
  readonly figures: ImageFigures | undefined
}

interface ImagesOptions {
  readonly folder: string
  readonly recipes: Readonly<Record<string, Recipe>>
  readonly openBlob: OpenBlob
  readonly peers?: PeerContent | undefined
  readonly bootOrder?: BootOrder | undefined
  readonly askLogin?: AskLogin | undefined
  readonly holders?: Holders
  readonly quotaBytes?: number | undefined
  /** For disks that are still being fetched. The path must be short, and used by this agent only. */
  readonly socketFolder?: string
  /** Called when the node has other images than before. */
  changed(): void
  readonly log: Log
  /** Tests only. */
  readonly retry?: RetryPolicy | undefined
}

interface ImagesParts {
  /** Keys of the copies, by the names of their images. */
  readonly names: Map<string, string>
  readonly pulled: PulledImages
  readonly leases: Leases
  readonly space: CacheSpace
  store(): Promise<ContentStore>
}

/** The longest name that a node's report may contain. */
const maxNameLength = 512

export async function openImages(options: ImagesOptions): Promise<NodeImages> {
  const { folder, recipes, holders = noHolders, changed } = options
  const names = new Map<string, string>(await contentNames(folder))
  for (const [name, recipe] of Object.entries(recipes)) if (await recipe.find(folder)) names.set(name, `recipe:${name}`)
  const pulled = await openPulledImages(folder)
  const leases = new Leases(folder)
  let opening: Promise<ContentStore> | undefined
  /** Opened on first use. A failure is retried on the next use. */
  const store = (): Promise<ContentStore> => {
    opening ??= openContentFolder(path.join(folder, 'content')).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
  const evicted = (key: string): void => {
    for (const [name, its] of names) if (its === key) names.delete(name)
    changed()
  }
  const space = await CacheSpace.open({ ...options, leases, holders, store, evicted })
  return new NodeImages(options, { names, pulled, leases, space, store })
}

class NodeImages implements Images {
  readonly fetches = new ContentFetches()
  readonly figures: ImageFigures = { reads: 0, readWaitMs: 0, peerBytes: 0, serverBytes: 0, registryBytes: 0 }
  readonly arrivals: Arrivals
  readonly #lookups = { hits: 0, misses: 0 }
  readonly #options: ImagesOptions
  readonly #parts: ImagesParts
  readonly #providers: ImageProviders

  constructor(options: ImagesOptions, parts: ImagesParts) {
    this.#options = options
    this.#parts = parts
    this.#providers = new ImageProviders({
      ...options,
      ...parts,
      fetches: this.fetches,
      fetched: (from, bytes) => {
        this.figures[`${from}Bytes`] += bytes
      },
      open: options.openBlob,
      ask: options.askLogin,
    })
    this.arrivals = new Arrivals({
      ...options,
      socketFolder: options.socketFolder ?? socketFolderOf(options.folder),
      figures: this.figures,
      fetch: async (provider, fetchOptions) => {
        await using held = new AsyncDisposableStack()
        return await this.#get(provider, { ...fetchOptions, progress: () => undefined, held })
      },
    })
  }

  async ensure(image: VmImage, options: EnsureOptions): Promise<BaseImage> {
    return this.#named(image, await this.#get(await this.#providerOf(image, options), options))
  }

  async ensureIso({ name, content }: DesiredIso, options: EnsureOptions): Promise<string> {
    return (await this.#get(this.#providers.content(content, 'ISO', name), options)).disk
  }

  async find({ name, content, reference }: VmImage): Promise<BaseImage | undefined> {
    if (reference !== undefined) return (await this.#providers.pulled({ reference, name, vm: undefined }))?.find()
    return content === undefined ? undefined : findContent(this.#options.folder, content)
  }

  async arrive(image: VmImage, user: ArrivalUser, options: BeginOptions & EnsureOptions): Promise<BaseImage> {
    const provider = await this.#providerOf(image, { ...options, vm: options.vm ?? user.uid })
    const arrived = async (whole: BaseImage): Promise<void> => user.arrived(this.#named(image, whole))
    // The lease holds the copy until the VM's record does.
    options.held?.defer(await this.#parts.leases.take(provider.key))
    return this.#named(image, await this.arrivals.begin(provider, { ...user, arrived }, options))
  }

  async resume(image: VmImage, user: ArrivalUser, signal: AbortSignal): Promise<void> {
    await this.arrive(image, user, { signal, progress: () => undefined, isRunning: true })
  }

  names(): readonly string[] {
    return [...this.#parts.names.keys()].filter((name) => name.length <= maxNameLength)
  }

  lookups(): { readonly hits: number; readonly misses: number } {
    return { ...this.#lookups }
  }

  async pin(images: readonly VmImage[]): Promise<void> {
    const { pulled } = this.#parts
    const keys = images.map(
      async (image) => (image.reference && (await pulled.find(image.reference))?.content) ?? keyOf(image),
    )
    await this.#options.holders?.pin(await Promise.all(keys))
  }

  async drop(key: string): Promise<void> {
    if (!(await this.#parts.space.drop(key)))
      this.#options.log.warn('a cached image stays because it is in use', { name: key })
  }

  copies(): readonly LocalCopy[] {
    const { space, pulled } = this.#parts
    return space.copies.map((copy) => {
      const from = pulled.of(copy.key)
      if (!from) return copy
      const { reference, names, sizeBytes } = from
      return { ...copy, pulled: { reference, sizeBytes, ...(names && { names: [...names] }) } }
    })
  }

  space(): Space {
    return this.#parts.space.report()
  }

  async holdContent(id: string, image?: VmImage): Promise<() => Promise<void>> {
    const { leases, pulled } = this.#parts
    const content = image?.reference === undefined ? undefined : (await pulled.find(image.reference))?.content
    const releases = [await leases.take(`${packing}${id}`)]
    const release = async () => void (await Promise.all(releases.map((each) => each())))
    try {
      if (content !== undefined) releases.push(await leases.take(content))
    } catch (error) {
      await release()
      throw error
    }
    return release
  }

  async isPackingAlone(id: string): Promise<boolean> {
    const taken = [...(await this.#parts.leases.taken())]
    return !taken.some((key) => key.startsWith(packing) && key !== `${packing}${id}`)
  }

  store(): Promise<ContentStore> {
    return this.#parts.store()
  }

  /** The store to pack into, with the content of the server behind it. */
  async content(): Promise<NodeContent> {
    const store = await this.store()
    return { store, source: fetchedContent({ store, open: this.#options.openBlob }) }
  }

  async #providerOf(image: VmImage, options: EnsureOptions): Promise<ImageProvider> {
    const { name, content, reference } = image
    if (reference === undefined)
      return content === undefined ? this.#providers.recipe(image) : this.#providers.content(content, 'image', name)
    const desired = { reference, name, vm: options.vm }
    const known = await this.#providers.pulled(desired)
    if (known) return known
    await this.#make(this.#providers.resolving(desired), options)
    const resolved = await this.#providers.pulled(desired)
    if (resolved) return resolved
    throw new Error(`image ${name} could not be resolved; try again`)
  }

  /** The lease is taken before the copy is looked for, so that it is not removed in between. */
  async #get(provider: ImageProvider, options: EnsureOptions): Promise<BaseImage> {
    await using lease = new AsyncDisposableStack()
    const held = options.held ?? lease
    held.defer(await this.#parts.leases.take(provider.key))
    const copy = await this.#findOrMake(provider, options)
    if (options.held) {
      await markCopyUsed(path.dirname(copy.disk))
      this.#parts.space.markUsed(provider.key)
    }
    return copy
  }

  async #findOrMake(provider: ImageProvider, options: EnsureOptions): Promise<BaseImage> {
    const existing = await provider.find()
    this.#lookups[existing ? 'hits' : 'misses'] += 1
    if (existing) return existing
    await this.#make(provider, options)
    await this.#parts.space.settle().catch((error: unknown) => {
      this.#options.log.warn('failed to free space for images', { problem: reasonOf(error) })
    })
    const made = await provider.find()
    if (made) return made
    throw new Error(`${provider.title} is missing after it was created; try again`)
  }

  #make(provider: ImageProvider, options: EnsureOptions): Promise<void> {
    return share(this.#options.folder, provider, options).catch((error: unknown) => {
      options.signal.throwIfAborted()
      const { title, failure, next } = provider
      this.#options.log.warn('failed to provide an image or ISO', { name: title, problem: reasonOf(error) })
      throw new Error(`${title} ${failure}: ${reasonOf(error)}${next}`, { cause: error })
    })
  }

  /** Remembers the name of a complete copy. Returns the copy with the name of the image. */
  #named(image: VmImage, copy: BaseImage): BaseImage {
    const { names } = this.#parts
    const name = image.reference ?? image.name
    const key = baseKeyOf(image, copy)
    if (names.get(name) !== key && copy.socket === undefined) {
      names.set(name, key)
      this.#options.changed()
    }
    return { ...copy, name: image.name }
  }
}

/** For simulated nodes: every image exists and is empty. */
export function pretendImages(): Images {
  const pretend = async ({ name, sizeBytes = 10 * 2 ** 30 }: VmImage): Promise<BaseImage> => ({
    name,
    digest: `simulated:${name}`,
    disk: '/dev/null',
    format: 'raw',
    virtualSizeBytes: sizeBytes,
    boot: { kind: 'firmware' },
  })
  return {
    names: () => [],
    lookups: () => ({ hits: 0, misses: 0 }),
    pin: async () => undefined,
    drop: async () => undefined,
    holdContent: async () => async () => undefined,
    isPackingAlone: async () => false,
    copies: () => [],
    space: () => undefined,
    store: async () => undefined,
    fetches: new ContentFetches(),
    figures: undefined,
    ensureIso: async () => '/dev/null',
    ensure: pretend,
    find: pretend,
    arrive: pretend,
    resume: async () => undefined,
    arrivals: {
      of: () => undefined,
      idle: async () => undefined,
      leave: async () => undefined,
      list: () => [],
      stop: async () => undefined,
    },
  }
}
