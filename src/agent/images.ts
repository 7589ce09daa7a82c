// The node's copies of images and ISOs. One with content is fetched from the server, one with a recipe is built here;
// either once, whoever asks for it meanwhile, and no longer than somebody waits.
import path from 'node:path'
import type { WantedVm } from '../api/agent.ts'
import type { BaseImage } from '../drivers/driver.ts'
import type { ContentSource, ContentStore } from '../images/content.ts'
import { chunksOf } from '../images/manifest.ts'
import { eachAtOnce } from '../images/parallel.ts'
import { openStore } from '../images/store.ts'
import { readManifest } from '../images/stored-manifests.ts'
import type { Log } from '../platform/log.ts'
import { contentNames, findContent, makeContent } from './image-content.ts'
import { fetchedContent, type OpenBlob } from './image-content-source.ts'
import { type Holders, nobody } from './image-holders.ts'
import { type Copy, markUsed, packing } from './image-inventory.ts'
import { openLeases } from './image-leases.ts'
import { openRoom, type Space } from './image-room.ts'
import { reasonOf } from './messages.ts'
import type { NodeContent } from './pack.ts'
import type { PeerContent } from './peers.ts'
import type { Recipe } from './recipes.ts'

export type WantedImage = WantedVm['image']
export interface WantedIso {
  readonly name: string
  /** The digest of its manifest. */
  readonly content: string
}

export interface EnsureOptions {
  readonly signal: AbortSignal
  progress(phase: string, percent?: number): void
  /** It is to be used: it stays where it is until this is disposed of. */
  readonly held?: AsyncDisposableStack
}

/** What a copy is known by. */
export const keyOf = ({ content, recipe }: Pick<WantedImage, 'content' | 'recipe'>): string =>
  content ?? `recipe:${recipe ?? ''}`

export interface Images {
  /** The node's copy, made when it is not there yet. */
  ensure(image: WantedImage, options: EnsureOptions): Promise<BaseImage>
  /** The file, fetched when it is not there yet. */
  ensureIso(iso: WantedIso, options: EnsureOptions): Promise<string>
  /** Names of the images that are here. */
  names(): readonly string[]
  /** Keys of those that are to stay, used or not. */
  keep(keys: readonly string[]): Promise<void>
  /** Removes a copy, unless it is used or to stay. */
  drop(key: string): Promise<void>
  copies(): readonly Copy[]
  /** Undefined where nothing takes any. */
  space(): Space | undefined
  /**
   * Until it is released, no chunk goes that no manifest here names: for whoever puts some, until they are delivered.
   * `id` tells one from another.
   */
  holdContent(id: string): Promise<() => Promise<void>>
  /** Content that is here, to be served to others. */
  store(): Promise<ContentStore | undefined>
}

export interface OpenedImages extends Images {
  /** To pack into, and to read what is here or on the server. */
  content(): Promise<NodeContent>
}

export interface ImagesOptions {
  readonly folder: string
  readonly recipes: Readonly<Record<string, Recipe>>
  /** Content from the server. */
  readonly openBlob: OpenBlob
  /** Content from other nodes. */
  readonly peers?: PeerContent | undefined
  /** Who else has a say in what goes; nobody when left out. */
  readonly holders?: Holders
  readonly quotaBytes?: number | undefined
  /** There is one more. */
  added(): void
  readonly log: Log
}

/** How something comes to be here. */
interface Way {
  /** Of the copy. Equal ones are the same work. */
  readonly key: string
  /** For messages: `image "x"`. */
  readonly title: string
  readonly phase: string
  readonly failure: string
  /** What to know after a failure. */
  readonly next: string
  find(): Promise<BaseImage | undefined>
  make(options: { readonly signal: AbortSignal; progress(line?: string, percent?: number): void }): Promise<void>
}

interface Making {
  readonly made: Promise<void>
  readonly cancel: AbortController
  readonly waiting: Set<EnsureOptions>
}
/** By folder and what is made: agents of one process share a folder, and the work. */
const makings = new Map<string, Making>()

export async function openImages(options: ImagesOptions): Promise<OpenedImages> {
  const { folder, recipes, openBlob, peers, holders = nobody, quotaBytes, added, log } = options
  /** Names, and the copies that they stand for. */
  const here = new Map<string, string>(await contentNames(folder))
  for (const [name, recipe] of Object.entries(recipes)) if (await recipe.find(folder)) here.set(name, `recipe:${name}`)
  let opening: Promise<ContentStore> | undefined

  /** Opened with the first image that needs it; one that failed to open is tried again. */
  const store = (): Promise<ContentStore> => {
    opening ??= openStore(path.join(folder, 'content')).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
  const leases = openLeases(folder)
  const evicted = (key: string): void => {
    for (const [name, its] of here) if (its === key) here.delete(name)
    added()
  }
  const room = await openRoom({ folder, recipes, quotaBytes, leases, holders, store, evicted, log })

  const byContent = (content: string, kind: 'image' | 'ISO', name: string): Way => ({
    key: content,
    title: `${kind} "${name}"`,
    phase: `fetching the ${kind}`,
    failure: 'could not be fetched',
    next: '; what has come of it is kept for the next try',
    find: () => findContent(folder, content),
    make: async ({ signal, progress }) => {
      const parts = { store: await store(), open: (await peers?.around(openBlob, content, signal)) ?? openBlob }
      const need = await needOf(parts.store, fetchedContent(parts), content, signal)
      using reserved = await room.take({ title: `${kind} "${name}"`, ...need })
      await makeContent(folder, content, {
        source: fetchedContent({ ...parts, isPassedOn: !reserved.keepsChunks }),
        ...(kind === 'image' && { name }),
        signal,
        progress: (percent) => progress(undefined, percent),
      })
    },
  })

  const byRecipe = (image: WantedImage): Way => {
    const recipe = recipeOf(image, recipes)
    return {
      key: keyOf(image),
      title: `image "${image.name}"`,
      phase: 'building the image',
      failure: 'could not be built',
      next: '',
      find: () => recipe.find(folder),
      make: (options) => recipe.make(folder, options),
    }
  }

  /** Nobody takes it away from before the first look until it is used. */
  const get = async (way: Way, options: EnsureOptions): Promise<BaseImage> => {
    const release = await leases.take(way.key)
    if (options.held) options.held.defer(release)
    try {
      const found = await find(way, options)
      if (options.held) {
        await markUsed(path.dirname(found.disk))
        room.used(way.key)
      }
      return found
    } finally {
      if (!options.held) await release()
    }
  }

  const find = async (way: Way, options: EnsureOptions): Promise<BaseImage> => {
    const there = await way.find()
    if (there) return there
    await share(folder, way, options).catch((error: unknown) => {
      options.signal.throwIfAborted()
      log.warn('an image or ISO could not be had', { name: way.title, problem: reasonOf(error) })
      throw new Error(`the ${way.title} ${way.failure}: ${reasonOf(error)}${way.next}`, { cause: error })
    })
    await room.settle().catch((error: unknown) => log.warn('no room was made', { problem: reasonOf(error) }))
    const made = await way.find()
    if (made) return made
    throw new Error(`the ${way.title} is not there after it was made; try again`)
  }

  return {
    names: () => [...here.keys()],
    keep: (keys) => holders.keep(keys),
    async drop(key) {
      if (!(await room.drop(key))) log.warn('a copy of an image stays, for it is used', { name: key })
    },
    holdContent: (id) => leases.take(`${packing}${id}`),
    copies: room.copies,
    space: room.space,
    store,
    async content() {
      const opened = await store()
      return { store: opened, source: fetchedContent({ store: opened, open: openBlob }) }
    },
    async ensure(image, options) {
      const { name, content } = image
      const found = await get(content === undefined ? byRecipe(image) : byContent(content, 'image', name), options)
      if (here.get(name) !== keyOf(image)) {
        here.set(name, keyOf(image))
        added()
      }
      return { ...found, name }
    },
    ensureIso: async ({ name, content }, options) => (await get(byContent(content, 'ISO', name), options)).disk,
  }
}

async function share(folder: string, way: Way, options: EnsureOptions): Promise<void> {
  options.progress(way.phase)
  const place = `${folder}\n${way.key}`
  const making = makings.get(place) ?? start(place, way)
  making.waiting.add(options)
  try {
    await unlessAborted(making.made, options.signal)
  } finally {
    making.waiting.delete(options)
    // The last one that loses interest ends the work. Whoever comes while it winds up begins anew.
    if (making.waiting.size === 0) {
      if (makings.get(place) === making) makings.delete(place)
      making.cancel.abort()
    }
  }
}

function start(place: string, { phase, make }: Way): Making {
  const cancel = new AbortController()
  const waiting = new Set<EnsureOptions>()
  const progress = (line?: string, percent?: number): void => {
    for (const one of waiting) one.progress(line === undefined ? phase : `${phase}: ${line}`, percent)
  }
  const made = make({ signal: cancel.signal, progress })
  const making: Making = { made, cancel, waiting }
  makings.set(place, making)
  return making
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

function recipeOf({ name, recipe }: WantedImage, recipes: ImagesOptions['recipes']): Recipe {
  if (recipe === undefined) throw new Error(`the image "${name}" is not on this node`)
  const found = Object.hasOwn(recipes, recipe) ? recipes[recipe] : undefined
  if (found) return found
  throw new Error(`this agent has no recipe "${recipe}" for the image "${name}"; update the agent`)
}

/** For hypervisors that only pretend: an image that is nothing but its name. */
export function pretendImages(): Images {
  return {
    names: () => [],
    keep: async () => undefined,
    drop: async () => undefined,
    holdContent: async () => async () => undefined,
    copies: () => [],
    space: () => undefined,
    store: async () => undefined,
    ensureIso: async () => '/dev/null',
    ensure: async ({ name }) => ({
      name,
      digest: `simulated:${name}`,
      disk: '/dev/null',
      format: 'raw',
      virtualSizeBytes: 10 * 2 ** 30,
      boot: { kind: 'firmware' },
    }),
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', abort))
}
