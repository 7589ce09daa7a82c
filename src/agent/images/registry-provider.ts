// How an image in a registry comes to be on this node: first which content it is, which is known before any of it comes;
// then like any other content, but that the registry has it. Images of tart's are unpacked into content of ours first.
import type { ContentSource, ContentStore } from '../../images/content/content.ts'
import { hasAllContent, putManifest } from '../../images/pack/stored-manifests.ts'
import { packTart } from '../../oci/tart/read.ts'
import { findContent, type OpenedDisk } from './content.ts'
import { packing } from './inventory.ts'
import type { Leases } from './leases.ts'
import type { PulledImage, PulledImages } from './pulled-images.ts'
import { type AskLogin, leftAfter, registryContent, withRegistryImage } from './registry-image.ts'
import type { CacheSpace } from './room.ts'
import type { ImageProvider } from './single-flight.ts'

export interface Filling {
  readonly title: string
  /** Absent for ISOs. */
  readonly name?: string | undefined
  /** Where nobody nearer has it. Left out: the server is asked. */
  readonly read?: ContentSource['read']
}

export interface FillingOptions {
  readonly signal: AbortSignal
  progress(percent: number): void
  /** Whoever has the content says "not now": why. */
  waits?(reason: string): void
  readonly memoryFirst?: boolean | undefined
  /** It can be read while it comes. */
  opened?(disk: OpenedDisk): Promise<void>
}

interface RegistryProvidersParts {
  readonly folder: string
  readonly pulled: PulledImages
  readonly leases: Leases
  readonly room: CacheSpace
  readonly askLogin: AskLogin | undefined
  store(): Promise<ContentStore>
  /** Makes a copy of content. */
  fill(content: string, filling: Filling, options: FillingOptions): Promise<void>
}

interface DesiredPull {
  readonly reference: string
  /** As people know it. */
  readonly name: string
  /** For whom: its uid. */
  readonly vm: string | undefined
}

interface RegistryProviders {
  /** Undefined: it has to be learnt first. */
  known(desired: DesiredPull): Promise<ImageProvider | undefined>
  learning(desired: DesiredPull): ImageProvider
}

const pulling = {
  phase: 'pulling',
  said: (line: string) => `pulling, ${line}`,
  failure: 'could not be pulled',
} as const

export function createRegistryProviders(parts: RegistryProvidersParts): RegistryProviders {
  const { folder, pulled, leases, room, askLogin: ask, store, fill } = parts

  const provider = ({ content, isUnpacked }: PulledImage, { reference, name, vm }: DesiredPull): ImageProvider => ({
    ...pulling,
    key: content,
    title: `image ${name}`,
    next: '; the downloaded part is kept for the next try',
    find: () => findContent(folder, content),
    make: ({ signal, progress, waits, opened, memoryFirst }) => {
      const left = leftAfter(performance.now())
      const reporting = { signal, opened, memoryFirst, progress: (percent: number) => progress(left(percent), percent) }
      const filling = { title: `image ${name}`, name: reference }
      if (isUnpacked) return fill(content, { ...filling, read: () => Promise.reject(unpackAgain()) }, reporting)
      const { read, close } = registryContent({ reference, vm, ask, signal, waits }, content)
      return fill(content, { ...filling, read }, reporting).finally(close)
    },
  })

  /** What is unpacked here cannot be fetched: either the copy is there, or all that it is made of. */
  const isUsable = async ({ content, isUnpacked }: PulledImage): Promise<boolean> =>
    !isUnpacked || (await findContent(folder, content)) !== undefined || hasAllContent(await store(), content)

  return {
    async known(desired) {
      const image = await pulled.find(desired.reference)
      return image && (await isUsable(image)) ? provider(image, desired) : undefined
    },

    learning: ({ reference, name, vm }) => ({
      ...pulling,
      key: `pull:${reference.slice(reference.indexOf('@') + 1)}`,
      title: `image ${name}`,
      next: '',
      find: async () => undefined,
      make: ({ signal, progress, waits }) =>
        withRegistryImage({ reference, vm, ask, signal, waits }, async (found, source) => {
          const { ours, raw, storedBytes, virtualSizeBytes: sizeBytes } = found
          if (ours) return pulled.remember({ reference, content: ours.imageDigest, sizeBytes, isUnpacked: false })
          const release = await leases.take(`${packing}${raw.digest}`)
          try {
            using _ = await room.take({ title: `image ${name}`, diskBytes: storedBytes, chunkBytes: 0 })
            const left = leftAfter(performance.now())
            const onProgress = ({ bytes, of }: { readonly bytes: number; readonly of: number }): void => {
              const percent = Math.floor((100 * bytes) / Math.max(1, of))
              progress(left(percent), percent)
            }
            const manifest = await packTart(source, raw, await store(), { signal, onProgress })
            const content = await putManifest(await store(), manifest, signal)
            return await pulled.remember({ reference, content, sizeBytes, isUnpacked: true })
          } finally {
            await release()
          }
        }),
    }),
  }
}

const unpackAgain = (): Error => new Error('unpacked content was deleted in the meantime; try again')
