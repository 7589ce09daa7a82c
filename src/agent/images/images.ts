// The node's copies of images and ISOs. One with content is fetched from the server, one in a registry from there, one
// with a recipe is built here.
import path from 'node:path'
import type { DesiredVm, ImageFigures } from '../../api/nodes/agent.ts'
import type { BaseImage } from '../../drivers/driver.ts'
import type { ContentSource, ContentStore } from '../../images/content/content.ts'
import { openContentFolder } from '../../images/content/store.ts'
import { chunksOf } from '../../images/format/manifest.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import type { Log } from '../../platform/log.ts'
import { eachAtOnce } from '../../platform/parallel.ts'
import { reasonOf } from '../../platform/reason.ts'
import type { RetryPolicy } from '../../rules/retry.ts'
import type { ArrivalUser, BootOrder } from './arrival.ts'
import { type Arrivals, type BeginOptions, createArrivals, socketFolderOf } from './arrivals.ts'
import { type Coming, createComing } from './coming.ts'
import { contentNames, findContent } from './content.ts'
import { fetchedContent, type NodeContent, type OpenBlob, type SourceOptions } from './content-source.ts'
import { fillContent } from './fill-content.ts'
import { type Holders, nobody } from './holders.ts'
import { type LocalCopy, markCopyUsed, packing } from './inventory.ts'
import { openLeases } from './leases.ts'
import type { PeerContent } from './peers.ts'
import { openPulledImages } from './pulled-images.ts'
import type { Recipe } from './recipes.ts'
import type { AskLogin } from './registry-image.ts'
import { createRegistryProviders, type Filling, type FillingOptions } from './registry-provider.ts'
import { openRoom, type Space } from './room.ts'
import { type EnsureOptions, type ImageProvider, share } from './single-flight.ts'

export type DesiredImage = DesiredVm['image']
interface DesiredIso {
  readonly name: string
  /** The digest of its manifest. */
  readonly content: string
}

/** What a copy is known by. */
export const keyOf = ({ content, recipe }: Pick<DesiredImage, 'content' | 'recipe'>): string =>
  content ?? `recipe:${recipe ?? ''}`

/** What the copy is known by that a disk stands on. */
export const baseKeyOf = (image: DesiredImage, { digest }: Pick<BaseImage, 'digest'>): string =>
  image.reference === undefined ? keyOf(image) : digest

export interface Images {
  /** The node's copy, made when it is not there yet. */
  ensure(image: DesiredImage, options: EnsureOptions): Promise<BaseImage>
  /** The same if all of it is here. */
  here(image: DesiredImage): Promise<BaseImage | undefined>
  /** The same for a VM that can run on it while it comes: then it has a socket. Images with a recipe come whole. */
  arrive(image: DesiredImage, user: ArrivalUser, options: BeginOptions & EnsureOptions): Promise<BaseImage>
  /** Serves again what a VM was reading when the agent ended. */
  resume(image: DesiredImage, user: ArrivalUser, signal: AbortSignal): Promise<void>
  readonly arrivals: Pick<Arrivals, 'of' | 'idle' | 'leave' | 'list' | 'stop'>
  /** The file, fetched when it is not there yet. */
  ensureIso(iso: DesiredIso, options: EnsureOptions): Promise<string>
  /** Names of the images that are here. */
  names(): readonly string[]
  /** Keys of those that are to stay, used or not. */
  keep(keys: readonly string[]): Promise<void>
  /** Removes a copy, unless it is used or to stay. */
  drop(key: string): Promise<void>
  copies(): readonly LocalCopy[]
  /** How often an image was wanted and was here, and how often not, since the start. */
  lookups(): { readonly hits: number; readonly misses: number }
  /** Undefined where nothing takes any. */
  space(): Space | undefined
  /**
   * Until it is released, no chunk goes that no manifest here names: for whoever puts some, until they are delivered.
   * `id` tells one from another. `image` is what they are to be put together with.
   */
  holdContent(id: string, image?: DesiredImage): Promise<() => Promise<void>>
  /** Nobody but this one holds content here. */
  isPackingAlone(id: string): Promise<boolean>
  /** Content that is here, to be served to others. */
  store(): Promise<ContentStore | undefined>
  /** The same, of what is on its way. */
  readonly coming: Coming
  /** What was counted since the start; undefined where nothing is. */
  readonly figures: ImageFigures | undefined
}

interface OpenedImages extends Images {
  /** To pack into, and to read what is here or on the server. */
  content(): Promise<NodeContent>
}

interface ImagesOptions {
  readonly folder: string
  readonly recipes: Readonly<Record<string, Recipe>>
  /** Content from the server. */
  readonly openBlob: OpenBlob
  /** Content from other nodes. */
  readonly peers?: PeerContent | undefined
  readonly bootOrder?: BootOrder | undefined
  /** How registries are reached. */
  readonly askLogin?: AskLogin | undefined
  /** Who else has a say in what goes; nobody when left out. */
  readonly holders?: Holders
  readonly quotaBytes?: number | undefined
  /** Where disks are served that are on their way; short, and of this agent alone. */
  readonly socketFolder?: string
  /** There is one more. */
  added(): void
  readonly log: Log
  /** Tests only. */
  readonly retry?: RetryPolicy | undefined
}

export async function openImages(options: ImagesOptions): Promise<OpenedImages> {
  const { folder, recipes, openBlob, peers, askLogin, holders = nobody, quotaBytes, added, log, retry } = options
  /** Names, and the copies that they stand for. */
  const here = new Map<string, string>(await contentNames(folder))
  for (const [name, recipe] of Object.entries(recipes)) if (await recipe.find(folder)) here.set(name, `recipe:${name}`)
  const pulled = await openPulledImages(folder)
  const coming = createComing()
  const figures: ImageFigures = { reads: 0, readWaitMs: 0, peerBytes: 0, serverBytes: 0, registryBytes: 0 }
  const fetched: SourceOptions['fetched'] = (from, bytes) => {
    figures[`${from}Bytes`] += bytes
  }
  let opening: Promise<ContentStore> | undefined

  /** Opened with the first image that needs it; one that failed to open is tried again. */
  const store = (): Promise<ContentStore> => {
    opening ??= openContentFolder(path.join(folder, 'content')).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
  const leases = openLeases(folder)
  const lookups = { hits: 0, misses: 0 }
  const evicted = (key: string): void => {
    for (const [name, its] of here) if (its === key) here.delete(name)
    added()
  }
  const room = await openRoom({ folder, recipes, quotaBytes, leases, holders, store, evicted, log })

  /** Makes a copy of content. */
  const fill = async (
    content: string,
    { title, name, read }: Filling,
    { signal, progress, waits, ...how }: FillingOptions,
  ): Promise<void> => {
    const near = await peers?.near(content, signal)
    const parts = { store: await store(), near, coming, fetched, open: openBlob, read, waits, retry }
    const need = await needOf(parts.store, fetchedContent(parts), content, signal)
    using reserved = await room.take({ title, ...need })
    await fillContent(folder, content, { ...parts, isPassedOn: !reserved.keepsChunks, name, signal, progress, ...how })
  }

  const byContent = (content: string, kind: 'image' | 'ISO', name: string): ImageProvider => {
    const title = `${kind} ${name}`
    return {
      key: content,
      title,
      phase: `fetching the ${kind}`,
      failure: 'could not be fetched',
      next: '; the downloaded part is kept for the next try',
      find: () => findContent(folder, content),
      make: ({ progress, ...how }) =>
        fill(
          content,
          { title, name: kind === 'image' ? name : undefined },
          { ...how, progress: (percent) => progress(undefined, percent) },
        ),
    }
  }

  const registryProviders = createRegistryProviders({ folder, pulled, leases, room, askLogin, store, fill })

  const byRecipe = (image: DesiredImage): ImageProvider => {
    const recipe = recipeOf(image, recipes)
    return {
      key: keyOf(image),
      title: `image ${image.name}`,
      phase: 'building the image',
      failure: 'could not be built',
      next: '',
      find: () => recipe.find(folder),
      make: (options) => recipe.make(folder, options),
    }
  }

  const providerOf = async (image: DesiredImage, options: EnsureOptions): Promise<ImageProvider> => {
    const { name, content, reference } = image
    if (reference === undefined) return content === undefined ? byRecipe(image) : byContent(content, 'image', name)
    const desired = { reference, name, vm: options.vm }
    const known = await registryProviders.known(desired)
    if (known) return known
    await make(registryProviders.learning(desired), options)
    const learnt = await registryProviders.known(desired)
    if (learnt) return learnt
    throw new Error(`image ${name} could not be resolved; try again`)
  }

  /** Nobody takes it away from before the first look until it is used. */
  const get = async (provider: ImageProvider, options: EnsureOptions): Promise<BaseImage> => {
    const release = await leases.take(provider.key)
    if (options.held) options.held.defer(release)
    try {
      const found = await find(provider, options)
      if (options.held) {
        await markCopyUsed(path.dirname(found.disk))
        room.used(provider.key)
      }
      return found
    } finally {
      if (!options.held) await release()
    }
  }

  const arrivals = createArrivals({
    folder,
    socketFolder: options.socketFolder ?? socketFolderOf(folder),
    bootOrder: options.bootOrder,
    figures,
    log,
    retry,
    async fetch(provider, options) {
      await using held = new AsyncDisposableStack()
      return await get(provider, { ...options, progress: () => undefined, held })
    },
  })

  const noted = (image: DesiredImage, found: BaseImage): BaseImage => {
    const known = image.reference ?? image.name
    const key = baseKeyOf(image, found)
    if (here.get(known) !== key && found.socket === undefined) {
      here.set(known, key)
      added()
    }
    return { ...found, name: image.name }
  }

  const arrive = async (image: DesiredImage, user: ArrivalUser, begun: BeginOptions & EnsureOptions) => {
    const provider = await providerOf(image, { ...begun, vm: begun.vm ?? user.uid })
    const arrived = async (whole: BaseImage): Promise<void> => user.arrived(noted(image, whole))
    // Until the VM is on record, this keeps it; from then on, the record does.
    begun.held?.defer(await leases.take(provider.key))
    return noted(image, await arrivals.begin(provider, { ...user, arrived }, begun))
  }

  const make = (provider: ImageProvider, options: EnsureOptions): Promise<void> =>
    share(folder, provider, options).catch((error: unknown) => {
      options.signal.throwIfAborted()
      log.warn('failed to provide an image or ISO', { name: provider.title, problem: reasonOf(error) })
      throw new Error(`${provider.title} ${provider.failure}: ${reasonOf(error)}${provider.next}`, { cause: error })
    })

  const find = async (provider: ImageProvider, options: EnsureOptions): Promise<BaseImage> => {
    const there = await provider.find()
    lookups[there ? 'hits' : 'misses'] += 1
    if (there) return there
    await make(provider, options)
    await room
      .settle()
      .catch((error: unknown) => log.warn('failed to free space for images', { problem: reasonOf(error) }))
    const made = await provider.find()
    if (made) return made
    throw new Error(`${provider.title} is missing after it was created; try again`)
  }

  return {
    names: () => [...here.keys()].filter((name) => name.length <= longestName),
    lookups: () => ({ ...lookups }),
    keep: (keys) => holders.keep(keys),
    async drop(key) {
      if (!(await room.drop(key))) log.warn('a cached image stays because it is in use', { name: key })
    },
    async holdContent(id, image) {
      const content = image?.reference === undefined ? undefined : (await pulled.find(image.reference))?.content
      const releases = [await leases.take(`${packing}${id}`)]
      if (content !== undefined) releases.push(await leases.take(content))
      return async () => void (await Promise.all(releases.map((release) => release())))
    },
    async isPackingAlone(id) {
      const taken = [...(await leases.taken())]
      return !taken.some((key) => key.startsWith(packing) && key !== `${packing}${id}`)
    },
    copies: () =>
      room.copies().map((copy) => {
        const from = pulled.of(copy.key)
        return from ? { ...copy, pulled: { reference: from.reference, sizeBytes: from.sizeBytes } } : copy
      }),
    space: room.space,
    store,
    coming,
    figures,
    async content() {
      const opened = await store()
      return { store: opened, source: fetchedContent({ store: opened, open: openBlob }) }
    },
    async ensure(image, options) {
      return noted(image, await get(await providerOf(image, options), options))
    },
    async here({ name, content, reference }) {
      if (reference !== undefined) return (await registryProviders.known({ reference, name, vm: undefined }))?.find()
      return content === undefined ? undefined : findContent(folder, content)
    },
    arrive,
    resume: async (image, user, signal) =>
      void (await arrive(image, user, { signal, progress: () => undefined, isRunning: true })),
    arrivals,
    ensureIso: async ({ name, content }, options) => (await get(byContent(content, 'ISO', name), options)).disk,
  }
}

/** What making it takes of the disk, at most. */
async function needOf(store: ContentStore, source: ContentSource, content: string, signal: AbortSignal) {
  const lacking = new Map<string, number>()
  let diskBytes = 0
  for (const { digest, storedBytes, rawBytes } of chunksOf(await readManifest(source, content, signal))) {
    diskBytes += rawBytes
    lacking.set(digest, storedBytes)
  }
  await eachAtOnce([...lacking.keys()], looksAtOnce, async (digest) => {
    if (await store.has(digest)) lacking.delete(digest)
  })
  return { diskBytes, chunkBytes: [...lacking.values()].reduce((sum, bytes) => sum + bytes, 0) }
}
const looksAtOnce = 8
/** As reports of nodes have them. */
const longestName = 512

function recipeOf({ name, recipe }: DesiredImage, recipes: ImagesOptions['recipes']): Recipe {
  if (recipe === undefined) throw new Error(`image ${name} is not on this node`)
  const found = Object.hasOwn(recipes, recipe) ? recipes[recipe] : undefined
  if (found) return found
  throw new Error(`this agent has no recipe ${recipe} for image ${name}; update the agent`)
}

/** For hypervisors that only pretend: an image that is nothing but its name. */
export function pretendImages(): Images {
  return {
    names: () => [],
    lookups: () => ({ hits: 0, misses: 0 }),
    keep: async () => undefined,
    drop: async () => undefined,
    holdContent: async () => async () => undefined,
    isPackingAlone: async () => false,
    copies: () => [],
    space: () => undefined,
    store: async () => undefined,
    coming: createComing(),
    figures: undefined,
    ensureIso: async () => '/dev/null',
    here: async ({ name }) => pretended(name),
    arrive: async ({ name }) => pretended(name),
    resume: async () => undefined,
    arrivals: {
      of: () => undefined,
      idle: async () => undefined,
      leave: async () => undefined,
      list: () => [],
      stop: async () => undefined,
    },
    ensure: async ({ name }) => pretended(name),
  }
}

const pretended = (name: string): BaseImage => ({
  name,
  digest: `simulated:${name}`,
  disk: '/dev/null',
  format: 'raw',
  virtualSizeBytes: 10 * 2 ** 30,
  boot: { kind: 'firmware' },
})
