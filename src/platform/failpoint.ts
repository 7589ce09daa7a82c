// Places where a test lets the process die: SVC3_FAILPOINT=name as if by kill -9, SVC3_FAILPOINT=name:exit by an exit,
// SVC3_FAILPOINT=@file at the one that the file names by then. Without SVC3_TEST=1 or NODE_ENV=test nothing happens.
import fs from 'node:fs'

const endings: Readonly<Record<string, () => void>> = {
  kill: () => process.kill(process.pid, 'SIGKILL'),
  exit: () => process.exit(1),
}

/** Read once: each look asks the operating system. */
const { SVC3_FAILPOINT, SVC3_TEST, NODE_ENV } = process.env
const named = SVC3_TEST === '1' || NODE_ENV === 'test' ? SVC3_FAILPOINT : undefined

/** Does nothing but for a test that named this point: then the process ends here. */
export function failpoint(name: string): void {
  if (named === undefined) return
  const [wanted, ending = 'kill'] = (named.startsWith('@') ? namedIn(named.slice(1)) : named).split(':')
  if (wanted === name) endings[ending]?.()
}

function namedIn(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
