// Garbage-collects content that no image, kept version of one, ISO or VM refers to. Keeps what is new or arrived since the oldest running
// upload began: its record may not be written yet.
import type { Loop } from '../platform/loop.ts'
import { contentCheckMs, contentGraceMs } from '../rules/retention.ts'
import { keptContents } from '../store/records/image-versions.ts'
import { type Controller, startController } from './controller.ts'

/** What this needs of the store of content; src/images has it. */
export interface Collectable {
  /** Deletes what the manifests do not need, when it is older than `graceMs` before `now`. */
  collect(
    manifests: () => Iterable<string>,
    options: { readonly graceMs: number; readonly now: () => number; readonly signal: AbortSignal },
  ): Promise<{ readonly deleted: number }>
}

interface Collection {
  readonly content: Collectable
  /** A program before there were kept versions freed the content of earlier ones: what they need is unknown, and not needed. */
  isGone(manifest: string): Promise<boolean>
  /** What came since then may belong to work in progress. */
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
  return (await content.collect(manifests, { graceMs: contentGraceMs, now: sinceMs, signal })).deleted
}
