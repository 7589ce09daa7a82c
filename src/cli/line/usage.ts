// Exit codes and the errors of commands: each has a message, and a hint about what to do next.

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

/** An error for the user. Without a hint, the usage of the command is printed. */
class CommandError extends Error {
  readonly exitCode: number
  readonly hint: string | undefined

  constructor(exitCode: number, message: string, hint?: string) {
    super(message)
    this.exitCode = exitCode
    this.hint = hint
  }
}

/** Compares properties and not classes, because operator commands are in other bundles. */
export const isCommandError = (error: unknown): error is CommandError =>
  error instanceof Error && 'exitCode' in error && 'hint' in error

/** The words are not a valid command. */
export class UsageError extends CommandError {
  override readonly name = 'UsageError'

  constructor(message: string, hint?: string) {
    super(exitCodes.usage, message, hint)
  }
}

/** Ended by Ctrl-C. */
export class Interrupted extends CommandError {
  override readonly name = 'Interrupted'

  constructor(message: string, hint?: string) {
    super(exitCodes.interrupted, message, hint)
  }
}

/** The wait has ended, and the work continues. */
export class TimedOut extends CommandError {
  override readonly name = 'TimedOut'

  constructor(message: string, hint: string) {
    super(exitCodes.timedOut, message, hint)
  }
}

/** A failure on this machine, such as an unreadable config file. */
export class Failure extends CommandError {
  override readonly name = 'Failure'

  constructor(message: string, hint: string) {
    super(exitCodes.failed, message, hint)
  }
}
