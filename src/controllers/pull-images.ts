// Runs the pulls that records request, a few at a time. An Updating record with a `pull` starts one, and deleting the
// record ends it. Pulls resume after a restart.
import type { Loop } from '../platform/loop.ts'
import type { ImageRecord } from '../store/records/fleet-records.ts'
import type { Entry } from '../store/store.ts'
import { type Controller, startController } from './controller.ts'

interface Wanted {
  readonly kind: 'image' | 'iso'
  readonly entry: Entry<ImageRecord>
}

interface Pulls {
  /** MUST leave the record Ready or Failed or, if the signal aborts, unchanged. */
  pull(kind: Wanted['kind'], entry: Entry<ImageRecord>, signal: AbortSignal): Promise<void>
  /** Deletes partial downloads of all pulls that are not in `wanted`. */
  clean(wanted: readonly Wanted[]): Promise<void>
}

const everyMs = 60_000
const maxConcurrentPulls = 2

export function pullImages(controller: Controller, pulls: Pulls): Loop {
  const { log } = controller
  const { images, isos } = controller.collections
  const running = new Map<string, { readonly stop: AbortController; readonly done: Promise<void> }>()

  const wanted = (): Wanted[] =>
    ([['image', images], ['iso', isos]] as const)
      .flatMap(([kind, collection]) => collection.list().map((entry) => ({ kind, entry })))
      .filter(({ entry: { value } }) => value.state === 'Updating' && value.pull)
      .sort((a, b) => (a.entry.value.createdAt < b.entry.value.createdAt ? -1 : 1)) // biome-ignore format: steps

  const loop = startController(controller, 'pull-images', {
    everyMs,
    run: async () => {
      const all = wanted()
      const keys = new Set(all.map(keyOf))
      for (const [key, { stop }] of running) if (!keys.has(key)) stop.abort(new Error('the pull was canceled'))
      await pulls.clean(all)
      for (const each of all) {
        if (running.size >= maxConcurrentPulls) break
        if (!running.has(keyOf(each))) begin(each)
      }
    },
    follow: (started) =>
      [images, isos].map(({ view }) =>
        view.subscribe((changes) => {
          const isOurs = changes.some(
            (change) =>
              isPull(change.previous?.value) !== isPull(change.type === 'put' ? change.entry.value : undefined),
          )
          if (isOurs) started.nudge()
        }),
      ),
  })

  function begin(each: Wanted): void {
    const stop = new AbortController()
    const failed = (error: unknown): void => {
      if (!stop.signal.aborted) log.error('a pull failed unexpectedly and will be retried', {}, error)
    }
    const done = pulls
      .pull(each.kind, each.entry, stop.signal)
      .catch(failed)
      .then(() => {
        running.delete(keyOf(each))
        loop.nudge()
      })
    running.set(keyOf(each), { stop, done })
  }

  return {
    nudge: loop.nudge,
    stop: async () => {
      await loop.stop()
      for (const { stop } of running.values()) stop.abort(new Error('the server stops'))
      await Promise.all([...running.values()].map(({ done }) => done))
    },
  }
}

const keyOf = ({ kind, entry: { value } }: Wanted): string =>
  `${kind} ${value.name} ${value.createdAt} ${value.pull?.sha256}`
const isPull = (record: ImageRecord | undefined): boolean => record?.pull !== undefined
