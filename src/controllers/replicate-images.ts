// Copies the content of every image to each server, where servers share records but not disks, so that losing one
// server loses no image.
import type { Loop } from '../platform/loop.ts'
import { keptContents } from '../store/records/image-versions.ts'
import { type Controller, startController } from './controller.ts'

export interface Replicas {
  /** Fetches an image. Returns whether it is complete on this server. */
  bring(digest: string, signal: AbortSignal): Promise<boolean>
  /** Calls `listener` when another server, which may have missing content, has joined or left. */
  subscribe(listener: () => void): () => void
}

const everyMs = 60_000

export function replicateImages(controller: Controller, replicas: Replicas): Loop {
  const { images, isos } = controller.collections
  /** Digests known to be complete here. They stay so: content is immutable, and content that records name is kept. */
  let here = new Set<string>()
  return startController(controller, 'replicate-images', {
    everyMs,
    run: async (signal) => {
      const named = [...images.list(), ...isos.list()].flatMap(({ value }) => value.content ?? [])
      // Current versions come first.
      const wanted = new Set([...named, ...images.list().flatMap(({ value }) => keptContents(value))])
      here = new Set([...here].filter((digest) => wanted.has(digest)))
      for (const digest of wanted) {
        if (signal.aborted) return
        if (here.has(digest)) continue
        if (await replicas.bring(digest, signal)) here.add(digest)
      }
    },
    follow: (loop) => [
      replicas.subscribe(loop.nudge),
      ...[images, isos].map(({ view }) =>
        view.subscribe((changes) => {
          const isNew = changes.some(
            (change) =>
              change.type === 'put' &&
              change.entry.value.content !== undefined &&
              change.entry.value.content !== change.previous?.value.content,
          )
          if (isNew) loop.nudge()
        }),
      ),
    ],
  })
}
