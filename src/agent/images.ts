// The node's copies of images and ISOs. One with content is fetched from the server, one with a recipe is built here;
// either once, whoever asks for it meanwhile, and no longer than somebody waits.
import path from 'node:path'
import type { WantedVm } from '../api/agent.ts'
import type { BaseImage } from '../drivers/driver.ts'
import { openStore } from '../images/store.ts'
import type { Log } from '../platform/log.ts'
import { contentNames, findContent, makeContent } from './image-content.ts'
import { fetchedContent, type OpenBlob } from './image-content-source.ts'
import { reasonOf } from './messages.ts'
import type { NodeContent } from './pack.ts'
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
}

export interface Images {
  /** The node's copy, made when it is not there yet. */
  ensure(image: WantedImage, options: EnsureOptions): Promise<BaseImage>
  /** The file, fetched when it is not there yet. */
  ensureIso(iso: WantedIso, options: EnsureOptions): Promise<string>
  /** Names of the images that are here. */
  names(): readonly string[]
}

export interface ImagesOptions {
  readonly folder: string
  readonly recipes: Readonly<Record<string, Recipe>>
  /** Content from the server. */
  readonly openBlob: OpenBlob
  /** There is one more. */
  added(): void
  readonly log: Log
}

/** How something comes to be here. */
interface Way {
  /** Equal ones are the same work. */
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

export async function openImages(options: ImagesOptions): Promise<Images & { content(): Promise<NodeContent> }> {
  const { folder, recipes, openBlob, added, log } = options
  const here = new Set<string>(await contentNames(folder))
  for (const [name, recipe] of Object.entries(recipes)) if (await recipe.find(folder)) here.add(name)
  let opened: Promise<NodeContent> | undefined

  /** Opened with the first image that needs it; one that failed to open is tried again. */
  const content = (): Promise<NodeContent> => {
    opened ??= openStore(path.join(folder, 'content')).then(
      (store) => ({ store, source: fetchedContent({ store, open: openBlob }) }),
      (error: unknown) => {
        opened = undefined
        throw error
      },
    )
    return opened
  }

  const byContent = (digest: string, kind: 'image' | 'ISO', name: string): Way => ({
    key: `${folder}\n${digest}`,
    title: `${kind} "${name}"`,
    phase: `fetching the ${kind}`,
    failure: 'could not be fetched',
    next: '; what has come of it is kept for the next try',
    find: () => findContent(folder, digest),
    make: async ({ signal, progress }) =>
      makeContent(folder, digest, {
        source: (await content()).source,
        ...(kind === 'image' && { name }),
        signal,
        progress: (percent) => progress(undefined, percent),
      }),
  })

  const byRecipe = (image: WantedImage): Way => {
    const recipe = recipeOf(image, recipes)
    return {
      key: `${folder}\n${image.recipe}`,
      title: `image "${image.name}"`,
      phase: 'building the image',
      failure: 'could not be built',
      next: '',
      find: () => recipe.find(folder),
      make: (options) => recipe.make(folder, options),
    }
  }

  const get = async (way: Way, options: EnsureOptions): Promise<BaseImage> => {
    const there = await way.find()
    if (there) return there
    await share(way, options).catch((error: unknown) => {
      options.signal.throwIfAborted()
      log.warn('an image or ISO could not be had', { name: way.title, problem: reasonOf(error) })
      throw new Error(`the ${way.title} ${way.failure}: ${reasonOf(error)}${way.next}`, { cause: error })
    })
    const made = await way.find()
    if (made) return made
    throw new Error(`the ${way.title} is not there after it was made; try again`)
  }

  return {
    content,
    names: () => [...here],
    async ensure(image, options) {
      const { name, content: digest } = image
      const found = await get(digest === undefined ? byRecipe(image) : byContent(digest, 'image', name), options)
      if (!here.has(name)) {
        here.add(name)
        added()
      }
      return { ...found, name }
    },
    ensureIso: async ({ name, content }, options) => (await get(byContent(content, 'ISO', name), options)).disk,
  }
}

async function share(way: Way, options: EnsureOptions): Promise<void> {
  options.progress(way.phase)
  const making = makings.get(way.key) ?? start(way)
  making.waiting.add(options)
  try {
    await unlessAborted(making.made, options.signal)
  } finally {
    making.waiting.delete(options)
    // The last one that loses interest ends the work. Whoever comes while it winds up begins anew.
    if (making.waiting.size === 0) {
      if (makings.get(way.key) === making) makings.delete(way.key)
      making.cancel.abort()
    }
  }
}

function start({ key, phase, make }: Way): Making {
  const cancel = new AbortController()
  const waiting = new Set<EnsureOptions>()
  const progress = (line?: string, percent?: number): void => {
    for (const one of waiting) one.progress(line === undefined ? phase : `${phase}: ${line}`, percent)
  }
  const made = make({ signal: cancel.signal, progress })
  const making: Making = { made, cancel, waiting }
  makings.set(key, making)
  return making
}

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
