// Runs one piece of work at a time per VM, within this process: start, stop, destroy and changes of a disk wait for each
// other.

const tails = new Map<string, Promise<unknown>>()

export function exclusively<T>(key: string, work: () => Promise<T>): Promise<T> {
  const result = (tails.get(key) ?? Promise.resolve()).then(work, work)
  const ended = (): void => {
    if (tails.get(key) === tail) tails.delete(key)
  }
  const tail: Promise<void> = result.then(ended, ended)
  tails.set(key, tail)
  return result
}
