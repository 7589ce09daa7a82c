// Work of several steps that leaves nothing behind: each step says how to take it back, and when a later one fails they
// are taken back, last first.

export interface Undo {
  /** What takes back the step that was just done, or is about to be tried. */
  push(takeBack: () => Promise<void>): void
  /** Takes back everything. One that fails does not keep the others from it; the failures are returned. */
  run(): Promise<readonly unknown[]>
  /** There is no way back from here on. */
  clear(): void
}

export function createUndo(): Undo {
  const stack: (() => Promise<void>)[] = []
  return {
    push: (takeBack) => void stack.push(takeBack),
    async run() {
      const failures: unknown[] = []
      for (let takeBack = stack.pop(); takeBack; takeBack = stack.pop()) {
        await takeBack().catch((error: unknown) => failures.push(error))
      }
      return failures
    },
    clear: () => void stack.splice(0),
  }
}
