// Runs one piece of work at a time per key, within this process, in the order of the calls.

const tails = new Map<unknown, Promise<unknown>>()

/** The key may be any value, such as a path or the object whose work it is. */
export function exclusively<T>(key: unknown, work: () => Promise<T>): Promise<T> {
  const result = (tails.get(key) ?? Promise.resolve()).then(work, work)
  const ended = (): void => {
    if (tails.get(key) === tail) tails.delete(key)
  }
  const tail: Promise<void> = result.then(ended, ended)
  tails.set(key, tail)
  return result
}
