// Undoes the steps of failed work, last first.

export interface Undo {
  /** Adds how to undo a step that was done, or is about to be tried. */
  push(takeBack: () => Promise<void>): void
  /** Undoes all steps and returns the failures. */
  run(): Promise<readonly unknown[]>
  /** Keeps what was done. */
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
