// Asks before a destructive command, on a terminal only; --yes skips the question. Scripts are never asked. Neither are
// commands that another one reverts: `imagecache remove` and `rolebinding remove-subject`.
import type { Context, Options } from './command.ts'
import type { Host } from './host.ts'
import { readLine } from './input.ts'
import { Failure } from './line/usage.ts'

export const yesOption = {
  yes: { type: 'boolean', short: 'y', description: 'Skip the confirmation (asked only on a terminal)' },
} as const satisfies Options

const canAsk = ({ stdin, stderr }: Host): boolean => stdin.isTerminal && stderr.isTerminal

interface Loss {
  readonly yes: boolean
  /** Returns a question that names what is lost; undefined if nothing is. Called only on a terminal. */
  question(): string | Promise<string | undefined>
  /** The message after a no: `Nothing deleted`. */
  readonly refused: string
}

/** Throws unless the user confirms. */
export async function confirmLoss({ host, signal }: Context, { yes, question, refused }: Loss): Promise<void> {
  if (yes || !canAsk(host)) return
  const text = await question()
  if (text === undefined) return
  host.stderr.write(`${text} [y/N] `)
  const answer = await readLine(host, signal)
  if (/^(y|yes)$/i.test(answer)) return
  // A user who answers no needs no hint.
  throw new Failure(refused, /^(n|no)?$/i.test(answer) ? '' : 'Answer y, or add --yes to skip the question')
}

/** `VM demo`, `VMs a and b`, `VMs a, b, c and 17 more`. */
export function namesText([one, many]: readonly [string, string], names: readonly string[]): string {
  const shown = names.length > maxNames ? [...names.slice(0, maxNames), `${names.length - maxNames} more`] : [...names]
  const last = shown.pop() ?? ''
  return shown.length === 0 ? `${one} ${last}` : `${many} ${shown.join(', ')} and ${last}`
}

const maxNames = 20
