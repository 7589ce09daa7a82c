// The one rule of destructive commands: on a terminal, a question that names what is lost; --yes skips it. Without a
// terminal there is no question: a script is confirmed by being run. Nor is there one where a second command brings it
// all back: `imagecache remove` (the next deployment fetches it), `rolebinding remove-subject` (`add-subject`).
import type { Context, Options } from './command.ts'
import type { Host } from './host.ts'
import { readLine } from './input.ts'
import { Failure } from './line/usage.ts'

export const yesOption = {
  yes: { type: 'boolean', short: 'y', description: 'Skip the confirmation (asked only on a terminal)' },
} as const satisfies Options

/** Whether somebody can answer. */
const canAsk = ({ stdin, stderr }: Host): boolean => stdin.isTerminal && stderr.isTerminal

interface Loss {
  readonly yes: boolean
  /** Names what is lost. Called only when somebody is there to answer; undefined when nothing is lost. */
  question(): string | Promise<string | undefined>
  /** What is said when the answer is no: `Nothing deleted`. */
  readonly refused: string
}

/** Throws unless the answer is yes. */
export async function confirmLoss({ host, signal }: Context, { yes, question, refused }: Loss): Promise<void> {
  if (yes || !canAsk(host)) return
  const asked = await question()
  if (asked === undefined) return
  host.stderr.write(`${asked} [y/N] `)
  const answer = await readLine(host, signal)
  if (/^(y|yes)$/i.test(answer)) return
  // Who says no knows what to do next.
  throw new Failure(refused, /^(n|no)?$/i.test(answer) ? '' : 'Answer y, or add --yes to skip the question')
}

/** `VM demo`, `VMs a and b`, `VMs a, b, c and 17 more`. */
export function namesText([one, many]: readonly [string, string], names: readonly string[]): string {
  const shown = names.length > maxNames ? [...names.slice(0, maxNames), `${names.length - maxNames} more`] : [...names]
  const last = shown.pop() ?? ''
  return shown.length === 0 ? `${one} ${last}` : `${many} ${shown.join(', ')} and ${last}`
}

/** More would not be read. */
const maxNames = 20
