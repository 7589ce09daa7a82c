// The subscribe and notify functions that useSyncExternalStore needs for a value kept in a module.

interface Listeners {
  readonly subscribe: (listener: () => void) => () => void
  readonly notify: () => void
  readonly count: () => number
}

export function createListeners(): Listeners {
  const all = new Set<() => void>()
  return {
    subscribe: (listener) => {
      all.add(listener)
      return () => void all.delete(listener)
    },
    notify: () => {
      for (const listener of all) listener()
    },
    count: () => all.size,
  }
}
