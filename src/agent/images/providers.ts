// How a copy of an image or ISO is made: fetched from the server, fetched from a registry, or built here from a recipe. An image
// in a registry is resolved to its content first. Images of other formats are unpacked into svc3's.

import type { DesiredVm } from '../../api/nodes/agent.ts'
import type { ContentSource, ContentStore } from '../../images/content/content.ts'
import { chunksOf } from '../../images/format/manifest.ts'
import { hasAllContent, putManifest, readManifest } from '../../images/pack/stored-manifests.ts'
import { forEachParallel } from '../../platform/parallel.ts'
import { timeLeft } from '../../rules/durations.ts'
import type { CacheSpace } from './cache-space.ts'
import { fillContent, findContent } from './content.ts'
import { fetchedContent, type SourceOptions } from './content-source.ts'
import { packing } from './inventory.ts'
import type { Leases } from './leases.ts'
import type { PeerContent } from './peers.ts'
import type { PulledImage, PulledImages } from './pulled-images.ts'
import type { Recipe } from './recipes.ts'
import { type AskLogin, openRegistryImage, RegistryImageContent } from './registry-image.ts'
import type { ImageProvider, MakingOptions } from './single-flight.ts'

interface ProvidersOptions extends Pick<SourceOptions, 'fetches' | 'fetched' | 'open' | 'retry'> {
  readonly folder: string
  readonly recipes: Readonly<Record<string, Recipe>>
  readonly pulled: PulledImages
  readonly leases: Leases
  readonly space: CacheSpace
  readonly peers?: PeerContent | undefined
  readonly ask: AskLogin | undefined
  store(): Promise<ContentStore>
}

interface DesiredPull {
  readonly reference: string
  readonly name: string
  /** The uid of the VM that needs the image; undefined for one that the node caches. */
  readonly vm: string | undefined
}

interface Filling {
  readonly title: string
  /** Absent for ISOs. */
  readonly name?: string | undefined
  /** Reads what peers do not have; by default, the server is asked. */
  readonly read?: ContentSource['read']
}

const fetchedPartStays = '; the downloaded part is kept for the next try'
const pulling = {
  phase: 'pulling',
  phaseWith: (line: string) => `pulling, ${line}`,
  failure: 'could not be pulled',
} as const
const maxLookups = 8
const maxNamesLength = 512

/** Of the whole reference, because each registry has its own credentials. */
export const pullKeyOf = (reference: string): string => `pull:${reference}`

export class ImageProviders {
  readonly #options: ProvidersOptions

  constructor(options: ProvidersOptions) {
    this.#options = options
  }

  content(content: string, kind: 'image' | 'ISO', name: string): ImageProvider {
    const title = `${kind} ${name}`
    return {
      key: content,
      title,
      phase: `fetching the ${kind}`,
      failure: 'could not be fetched',
      next: fetchedPartStays,
      find: () => findContent(this.#options.folder, content),
      make: (options) => this.#fill(content, { title, name: kind === 'image' ? name : undefined }, options),
    }
  }

  recipe({ name, recipe: recipeName }: DesiredVm['image']): ImageProvider {
    const { folder, recipes } = this.#options
    if (recipeName === undefined) throw new Error(`image ${name} is not on this node`)
    const recipe = Object.hasOwn(recipes, recipeName) ? recipes[recipeName] : undefined
    if (!recipe) throw new Error(`this agent has no recipe ${recipeName} for image ${name}; update the agent`)
    return {
      key: `recipe:${recipeName}`,
      title: `image ${name}`,
      phase: 'building the image',
      failure: 'could not be built',
      next: '',
      find: () => recipe.find(folder),
      make: (options) => recipe.make(folder, options),
    }
  }

  /** Returns an image that was resolved before; undefined if it must be resolved (again). */
  async pulled(desired: DesiredPull): Promise<ImageProvider | undefined> {
    const { pulled } = this.#options
    const image = await pulled.find(desired.reference)
    if (!image || !(await this.#isUsable(image))) return undefined
    const { names = [] } = image
    const kept = [...names, desired.name].slice(-8)
    // A report has the names of up to 256 images, and must not be too large for the server.
    while (kept.length > 1 && kept.join('').length > maxNamesLength) kept.shift()
    if (!names.includes(desired.name)) await pulled.remember({ ...image, names: kept })
    return this.#pull(image, desired)
  }

  /** Resolves an image; afterwards, `pulled` returns it. */
  resolving({ reference, name, vm }: DesiredPull): ImageProvider {
    const { pulled, leases, space, store, ask } = this.#options
    const title = `image ${name}`
    return {
      ...pulling,
      key: pullKeyOf(reference),
      title,
      next: '',
      find: async () => undefined,
      make: async ({ signal, progress, onWait }) => {
        using opened = await openRegistryImage({ reference, vm, ask, signal, onWait })
        const { image } = opened
        const { raw, storedBytes, virtualSizeBytes: sizeBytes } = image
        if (image.ours)
          return pulled.remember({ reference, content: image.ours.imageDigest, sizeBytes, isUnpacked: false })
        const release = await leases.take(`${packing}${raw.digest}`)
        try {
          using _ = await space.reserve({ title, diskBytes: storedBytes, chunkBytes: 0 })
          const left = timeLeftAfter(performance.now())
          const onProgress = ({ bytes, of }: { readonly bytes: number; readonly of: number }): void => {
            const percent = Math.floor((100 * bytes) / Math.max(1, of))
            progress(left(percent), percent)
          }
          const manifest = await image.pack(await store(), { signal, onProgress })
          const content = await putManifest(await store(), manifest, signal)
          return await pulled.remember({ reference, content, sizeBytes, isUnpacked: true })
        } finally {
          await release()
        }
      },
    }
  }

  #pull({ content, isUnpacked }: PulledImage, { reference, name, vm }: DesiredPull): ImageProvider {
    const { folder, ask } = this.#options
    return {
      ...pulling,
      key: content,
      title: `image ${name}`,
      next: fetchedPartStays,
      find: () => findContent(folder, content),
      make: async (options) => {
        const left = timeLeftAfter(performance.now())
        const filling = { title: `image ${name}`, name: reference }
        const making: MakingOptions = {
          ...options,
          progress: (_, percent = 0) => options.progress(left(percent), percent),
          // RegistryImageContent calls the original `onWait`.
          onWait: undefined,
        }
        if (isUnpacked)
          return this.#fill(content, { ...filling, read: () => Promise.reject(new Error(deletedUnpacked)) }, making)
        const { signal, onWait } = options
        using registry = new RegistryImageContent({ reference, vm, ask, signal, onWait }, content)
        await this.#fill(content, { ...filling, read: (...args) => registry.read(...args) }, making)
      },
    }
  }

  /** Unpacked content exists only here: either the copy or all of its content must still exist. */
  async #isUsable({ content, isUnpacked }: PulledImage): Promise<boolean> {
    const { folder, store } = this.#options
    return !isUnpacked || (await findContent(folder, content)) !== undefined || hasAllContent(await store(), content)
  }

  async #fill(content: string, { title, name, read }: Filling, options: MakingOptions): Promise<void> {
    const { folder, peers, space, fetches, fetched, open, retry } = this.#options
    const { signal, onWait } = options
    const near = await peers?.near(content, signal)
    const source = { store: await this.#options.store(), near, fetches, fetched, open, read, onWait, retry }
    const need = await needOf(source.store, fetchedContent(source), content, signal)
    using reserved = await space.reserve({ title, ...need })
    const progress = (percent: number): void => options.progress(undefined, percent)
    await fillContent(folder, content, { ...options, ...source, isPassedOn: !reserved.keepsChunks, name, progress })
  }
}

const deletedUnpacked = 'unpacked content was deleted in the meantime; try again'

/** The most disk space that a copy and its chunks can need. */
async function needOf(store: ContentStore, source: ContentSource, content: string, signal: AbortSignal) {
  const missing = new Map<string, number>()
  let diskBytes = 0
  for (const { digest, storedBytes, rawBytes } of chunksOf(await readManifest(source, content, signal))) {
    diskBytes += rawBytes
    missing.set(digest, storedBytes)
  }
  await forEachParallel([...missing.keys()], maxLookups, async (digest) => {
    if (await store.has(digest)) missing.delete(digest)
  })
  return { diskBytes, chunkBytes: [...missing.values()].reduce((sum, bytes) => sum + bytes, 0) }
}

/** Estimates the time left from the time that has passed, such as `3 min left`; undefined at the start. */
function timeLeftAfter(startMs: number): (percent: number) => string | undefined {
  return (percent) => {
    const seconds = (performance.now() - startMs) / 1_000
    return percent < 1 || seconds < 1 ? undefined : `${timeLeft((seconds * (100 - percent)) / percent)} left`
  }
}
