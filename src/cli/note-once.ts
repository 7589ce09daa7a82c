// Prints a note about a risk: on terminals only, and once on each, because scripts cannot change their command lines.
import fs from 'node:fs'
import os from 'node:os'
import type { Context } from './command.ts'

export function noteOnce({ host, note }: Pick<Context, 'host' | 'note'>, topic: string, text: string): void {
  if (!host.stderr.isTerminal) return
  try {
    // A new file is the whole memory. The folder is emptied at a restart, when the numbers of shells begin again.
    if (host.shell !== undefined) fs.writeFileSync(`${os.tmpdir()}/svc3-${topic}-${host.shell}`, '', { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
  }
  note(text)
}
