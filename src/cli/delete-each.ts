// Deletes the named records concurrently and reports them in order. A failure does not stop the others; the worst one
// is the exit code.
import { ApiError, type Status } from '../api/errors.ts'
import type { Context } from './command.ts'
import { confirmLoss, namesText } from './confirm.ts'
import { reportFailure } from './failure.ts'
import { exitCodes, Interrupted } from './line/usage.ts'

interface Deletion {
  readonly names: readonly string[]
  /** The kind in the sentence about each, such as `vm`. */
  readonly kind: string
  /** Singular and plural in the question. */
  readonly nouns: readonly [string, string]
  /** Skips the question. */
  readonly yes: boolean
  /** Returns the question about `VMs a and b`, which says what is lost with them. */
  question(what: string, names: readonly string[]): string | Promise<string>
  /** The command that lists the remaining records, without the name of the program. */
  readonly listCommand: string
  remove(name: string): Promise<Status>
  /** Runs `write` so that its line appears above the progress of `remove`. */
  above?(write: () => void): void
  /** The sentence about each deleted record. Scripts rely on the one about VMs. */
  readonly sentence?: (name: string) => string
}

const maxConcurrent = 8
/** From the least to the most severe: a missing record needs no deletion. */
const bySeverity: readonly number[] = [
  exitCodes.done,
  exitCodes.notFound,
  exitCodes.conflict,
  exitCodes.timedOut,
  exitCodes.forbidden,
  exitCodes.usage,
  exitCodes.failed,
]

export async function deleteEach(context: Context, deletion: Deletion): Promise<number> {
  const { names, kind, listCommand, remove, sentence = (name) => `Successfully deleted ${kind} ${name}` } = deletion
  const { host, secrets, isTalking } = context
  const above = deletion.above ?? ((write) => write())
  const distinct = [...new Set(names)]
  await confirmLoss(context, {
    yes: deletion.yes || distinct.length === 0,
    question: () => deletion.question(namesText(deletion.nouns, distinct), distinct),
    refused: 'Nothing deleted',
  })
  const deleted: Status[] = []
  let failure: Error | undefined
  let worst: number = exitCodes.done
  try {
    for await (const { name, outcome } of inOrder(distinct, remove)) {
      if (!(outcome instanceof Error)) {
        deleted.push(outcome)
        if (isTalking) above(() => host.stdout.write(`${sentence(name)}\n`))
        continue
      }
      if (context.signal.aborted)
        throw new Interrupted(
          'Stopped waiting; deletes already sent continue',
          `To see what is left: svc3 ${listCommand}`,
        )
      // A missing login or connection is reported once, not for every name.
      if (!(outcome instanceof ApiError) || outcome.reason === 'Unauthorized') throw outcome
      failure = outcome
      if (names.length === 1) break
      let exitCode: number = exitCodes.failed
      above(() => {
        exitCode = reportFailure(outcome, { host, helpLine: '', secrets, interrupted: false })
      })
      if (bySeverity.indexOf(exitCode) > bySeverity.indexOf(worst)) worst = exitCode
    }
  } finally {
    // The list is printed even after an error, because a program must learn what was deleted.
    if (context.isData) await context.print(deleted, [], '')
  }
  // The caller reports a single failure in more detail.
  if (failure && names.length === 1) throw failure
  return worst
}

interface Outcome {
  readonly name: string
  readonly outcome: Status | Error
}

async function* inOrder(names: readonly string[], remove: Deletion['remove']): AsyncGenerator<Outcome> {
  const started: Promise<Outcome>[] = []
  const start = (name: string): void => {
    const outcome = remove(name).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))))
    started.push(outcome.then((outcome) => ({ name, outcome })))
  }
  for (const name of names.slice(0, maxConcurrent)) start(name)
  for (let index = 0; index < names.length; index++) {
    const settled = (await started[index]) as Outcome
    const next = names[index + maxConcurrent]
    if (next !== undefined) start(next)
    yield settled
  }
}
