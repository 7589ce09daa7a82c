// Garbage-collects image content that no image, kept version, ISO or VM refers to. Content that is newer than the
// oldest running upload is kept, because its record may not be written yet.
import type { Loop } from '../platform/loop.ts'
import { contentCheckMs, contentGraceMs } from '../rules/retention.ts'
import { keptContents } from '../store/records/image-versions.ts'
import { type Controller, startController } from './controller.ts'

/** The content store, which src/images implements. */
export interface Collectable {
  /** Deletes content that the manifests do not need and that is older than `graceMs` before `now`. Returns how many blobs it deleted. */
  collect(
    manifests: () => Iterable<string>,
    options: { readonly graceMs: number; readonly now: () => number; readonly signal: AbortSignal },
  ): Promise<number>
}

interface Collection {
  readonly content: Collectable
  /** Whether the content of a kept version is missing. Releases that did not keep versions deleted it. */
  isGone(manifest: string): Promise<boolean>
  /** Returns when the oldest work in progress began. Content that is newer may belong to it. */
  sinceMs(): number
}

export function collectImages(controller: Controller, collection: Collection): Loop {
  const { log } = controller
  return startController(controller, 'collect-images', {
    everyMs: contentCheckMs,
    run: async (signal) => {
      const count = await collectOnce(controller, collection, signal)
      if (count > 0) log.info('removed unused content', { count })
    },
  })
}

export async function collectOnce(
  { collections: { images, isos, vms } }: Pick<Controller, 'collections'>,
  { content, isGone, sinceMs }: Collection,
  signal: AbortSignal,
): Promise<number> {
  const gone = new Set<string>()
  for (const digest of images.list().flatMap(({ value }) => keptContents(value)))
    if (await isGone(digest)) gone.add(digest)
  const manifests = (): Set<string> => {
    const named = [...images.list(), ...isos.list()].map(({ value }) => value.content)
    const used = vms.list().flatMap(({ value: { imageContent, isoContent, captures = [] } }) => {
      return [imageContent, isoContent, ...captures.map(({ base }) => base)]
    })
    const kept = images.list().flatMap(({ value }) => keptContents(value))
    return new Set(
      [...named, ...used, ...kept.filter((digest) => !gone.has(digest))].filter((digest) => digest !== undefined),
    )
  }
  return content.collect(manifests, { graceMs: contentGraceMs, now: sinceMs, signal })
}
