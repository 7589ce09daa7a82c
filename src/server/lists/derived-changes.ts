// Merges two sources of one watch: changed records of the list, and items whose rendering changed because of other
// records (an image shows which VMs use it).
import type { Bookmark, Change } from '../../store/store.ts'

/** Calls back with the keys of items that changed without their records. Returns how to stop. */
export type ExtraChanges = (changed: (keys: readonly string[]) => void) => () => void

type Batch = readonly Change[] | Bookmark
export type WatchStep = { readonly batch: Batch } | { readonly touched: readonly string[] }

/** Yields batches in their order, and touched keys between them, each once. Ends when the batches do. */
export async function* withExtraChanges(
  first: IteratorResult<Batch>,
  rest: AsyncIterator<Batch>,
  extraChanges: ExtraChanges | undefined,
  alreadyTouched: readonly string[],
): AsyncGenerator<WatchStep> {
  const touched = new Set(alreadyTouched)
  let arrived: IteratorResult<Batch> | undefined = first
  let failure: { readonly error: unknown } | undefined
  let wake = (): void => undefined
  const stop = extraChanges?.((keys) => {
    for (const key of keys) touched.add(key)
    wake()
  })
  const ask = (): void =>
    void rest.next().then(
      (step) => {
        arrived = step
        wake()
      },
      (error: unknown) => {
        failure = { error }
        wake()
      },
    )
  try {
    for (;;) {
      if (failure) throw failure.error
      if (arrived) {
        const step: IteratorResult<Batch> = arrived
        if (step.done) return
        arrived = undefined
        ask()
        yield { batch: step.value }
      } else if (touched.size > 0) {
        const keys = [...touched]
        touched.clear()
        yield { touched: keys }
      } else await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    stop?.()
  }
}
