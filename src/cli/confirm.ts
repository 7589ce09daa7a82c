// Asks a question on the terminal and reads one line.
import type { Context } from './command.ts'
import type { Host } from './host.ts'

/** Whether somebody can be asked. */
export const canAsk = ({ stdin, stderr }: Host): boolean => stdin.isTerminal && stderr.isTerminal

/** Where nobody can be asked, as in scripts, the command is confirmed by being run. */
export async function confirm({ host, signal }: Context, question: string): Promise<boolean> {
  if (!canAsk(host)) return true
  host.stderr.write(`${host.calledAs}: ${question} [yes/no] `)
  return /^(y|yes)$/i.test(await readLine(host, signal))
}

export async function readLine({ stdin }: Pick<Host, 'stdin'>, signal: AbortSignal): Promise<string> {
  let line = ''
  for await (const chunk of stdin.chunks(signal)) {
    line += Buffer.from(chunk).toString('utf8')
    if (/[\r\n]/.test(line)) break
  }
  return line.split(/[\r\n]/)[0]?.trim() ?? ''
}
