// What the command line itself refuses: each says what is wrong in one line, and what to do next in another.

/** Words that make no command. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

/** Ctrl-C, where a command noticed it by itself or has something to say about it. Exit code 130. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

/** What was waited for goes on, and the waiting has ended. Exit code 7. */
export class TimedOut extends Error {
  override readonly name = 'TimedOut'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

/** A failure of the command line's own, such as a config file that cannot be read. Exit code 1. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}
