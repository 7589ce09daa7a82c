// Says in the log once per outage and kind why there is no connection to the server, not once per attempt.
import { ConnectionError } from '../../client/transport.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { LineTooLong } from './kept-connection.ts'

/** The server answers, but with something that this agent cannot use. */
export class UnusableMessage extends Error {
  override readonly name = 'UnusableMessage'
}

export class OutageLog {
  readonly #log: Log
  readonly #logged = new Set<'message' | 'absence' | 'obstacle'>()

  constructor(log: Log) {
    this.#log = log
  }

  failed(address: string, error: unknown): void {
    const isUnusable = error instanceof UnusableMessage || error instanceof LineTooLong
    // An obstacle that an operator has to remove is logged although the server was unreachable before.
    const kind = isUnusable ? 'message' : adviceOn(error) === '' ? 'absence' : 'obstacle'
    if (this.#logged.has(kind)) return
    this.#logged.add(kind)
    const problem = connectionProblem(error)
    const next =
      error instanceof LineTooLong
        ? 'reduce the VMs on this node, or their metadata and user data'
        : 'run the same version of agent and server, and check the server log'
    if (isUnusable)
      this.#log.error(`the server sent an unusable message; VMs keep running: ${next}`, { address, problem })
    else this.#log.warn('no connection to the server; VMs keep running', { address, problem })
  }

  connected(address: string): void {
    if (this.#logged.size > 0) this.#log.info('connected to the server again', { address })
    this.#logged.clear()
  }
}

/** Empty for failures that end without intervention. */
const adviceOn = (error: unknown): string =>
  error instanceof ConnectionError && !error.isTransient ? `. ${error.hint}` : ''

/** Why there is no connection, and what to do, for the log. */
export const connectionProblem = (error: unknown): string => reasonOf(error) + adviceOn(error)
