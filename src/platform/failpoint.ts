// Places where a test lets the process die: SVC3_FAILPOINT=name as if by kill -9, SVC3_FAILPOINT=name:exit by an exit,
// SVC3_FAILPOINT=@file at the one that the file names by then. Without SVC3_TEST=1 or NODE_ENV=test nothing happens.
import fs from 'node:fs'

const endings: Readonly<Record<string, () => void>> = {
  kill: () => process.kill(process.pid, 'SIGKILL'),
  exit: () => process.exit(1),
}

/** Does nothing but for a test that named this point: then the process ends here. */
export function failpoint(name: string): void {
  // One look where nobody tests: each asks the operating system.
  const { SVC3_FAILPOINT } = process.env
  if (SVC3_FAILPOINT === undefined || (process.env.SVC3_TEST !== '1' && process.env.NODE_ENV !== 'test')) return
  const named = SVC3_FAILPOINT.startsWith('@') ? namedIn(SVC3_FAILPOINT.slice(1)) : SVC3_FAILPOINT
  const [wanted, ending = 'kill'] = named.split(':')
  if (wanted === name) endings[ending]?.()
}

function namedIn(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
