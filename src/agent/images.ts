// The node's copies of images. An image with a recipe is built here, once, whoever asks for it meanwhile.
import type { WantedVm } from '../api/agent.ts'
import type { BaseImage } from '../drivers/driver.ts'
import type { Log } from '../platform/log.ts'
import { reasonOf } from './messages.ts'
import type { Recipe } from './recipes.ts'

export type WantedImage = WantedVm['image']

export interface EnsureOptions {
  readonly signal: AbortSignal
  progress(phase: string): void
}

export interface Images {
  /** The node's copy, made when it is not there yet. */
  ensure(image: WantedImage, options: EnsureOptions): Promise<BaseImage>
  /** Names of those that are here. */
  names(): readonly string[]
}

export interface ImagesOptions {
  readonly folder: string
  readonly recipes: Readonly<Record<string, Recipe>>
  /** There is one more. */
  added(): void
  readonly log: Log
}

interface Build {
  readonly made: Promise<void>
  readonly cancel: AbortController
  readonly waiting: Set<EnsureOptions>
}
/** By folder and recipe: agents of one process share a folder, and one build. */
const builds = new Map<string, Build>()

export async function openImages({ folder, recipes, added, log }: ImagesOptions): Promise<Images> {
  const here = new Set<string>()
  for (const [name, recipe] of Object.entries(recipes)) if (await recipe.find(folder)) here.add(name)

  const startBuild = (key: string, recipe: Recipe): Build => {
    const cancel = new AbortController()
    const waiting = new Set<EnsureOptions>()
    const progress = (line: string): void => {
      for (const one of waiting) one.progress(`building the image: ${line}`)
    }
    const made = recipe.make(folder, { signal: cancel.signal, progress }).finally(() => builds.delete(key))
    const build: Build = { made, cancel, waiting }
    builds.set(key, build)
    return build
  }

  const make = async (key: string, recipe: Recipe, options: EnsureOptions): Promise<void> => {
    options.progress('building the image')
    const build = builds.get(key) ?? startBuild(key, recipe)
    build.waiting.add(options)
    try {
      await unlessAborted(build.made, options.signal)
    } finally {
      build.waiting.delete(options)
      // The last one that loses interest ends the build.
      if (build.waiting.size === 0) build.cancel.abort()
    }
  }

  return {
    names: () => [...here],
    async ensure(image, options) {
      const recipe = recipeOf(image, recipes)
      let found = await recipe.find(folder)
      if (!found) {
        await make(`${folder}\n${image.recipe}`, recipe, options).catch((error: unknown) => {
          options.signal.throwIfAborted()
          log.warn('an image could not be built', { name: image.name, problem: reasonOf(error) })
          throw new Error(`the image "${image.name}" could not be built: ${reasonOf(error)}`)
        })
        found = await recipe.find(folder)
      }
      if (!found) throw new Error(`the image "${image.name}" is not there after it was built`)
      if (!here.has(image.name)) {
        here.add(image.name)
        added()
      }
      return { ...found, name: image.name }
    },
  }
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
