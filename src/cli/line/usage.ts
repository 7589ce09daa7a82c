// Usage errors: each has a line about what is wrong, and one about what to do next.

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  notAuthenticated: 3,
  forbidden: 4,
  notFound: 5,
  conflict: 6,
  timedOut: 7,
  interrupted: 130,
} as const

/** A failure that is shown as it is. Without a hint, the line of usage is shown. */
class CommandError extends Error {
  readonly exitCode: number
  readonly hint: string | undefined

  constructor(exitCode: number, message: string, hint?: string) {
    super(message)
    this.exitCode = exitCode
    this.hint = hint
  }
}

/** By what it has: operator commands have a bundle of their own, and with it classes of their own. */
export const isCommandError = (error: unknown): error is CommandError =>
  error instanceof Error && 'exitCode' in error && 'hint' in error

/** Words that make no command. */
export class UsageError extends CommandError {
  override readonly name = 'UsageError'

  constructor(message: string, hint?: string) {
    super(exitCodes.usage, message, hint)
  }
}

/** Ctrl-C, where a command noticed it by itself or has something to say about it. */
export class Interrupted extends CommandError {
  override readonly name = 'Interrupted'

  constructor(message: string, hint?: string) {
    super(exitCodes.interrupted, message, hint)
  }
}

/** What was waited for goes on, and the waiting has ended. */
export class TimedOut extends CommandError {
  override readonly name = 'TimedOut'

  constructor(message: string, hint: string) {
    super(exitCodes.timedOut, message, hint)
  }
}

/** A failure of the command line's own, such as a config file that cannot be read. */
export class Failure extends CommandError {
  override readonly name = 'Failure'

  constructor(message: string, hint: string) {
    super(exitCodes.failed, message, hint)
  }
}
