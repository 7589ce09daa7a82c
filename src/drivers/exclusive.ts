// One at a time per VM, within this process: start, stop, destroy and what changes a disk wait for each other.

const tails = new Map<string, Promise<unknown>>()

export function exclusively<T>(key: string, work: () => Promise<T>): Promise<T> {
  const before = tails.get(key) ?? Promise.resolve()
  const result = before.then(work, work)
  const tail = result
    .catch(() => undefined)
    .finally(() => {
      if (tails.get(key) === tail) tails.delete(key)
    })
  tails.set(key, tail)
  return result
}
