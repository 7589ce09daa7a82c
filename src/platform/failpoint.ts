// Points at which a test ends the process: SVC3_FAILPOINT=name as kill -9 would, SVC3_FAILPOINT=name:exit by an exit,
// SVC3_FAILPOINT=@file at the point that the file names. Has no effect without SVC3_TEST=1 or NODE_ENV=test.
import fs from 'node:fs'

const endings: Readonly<Record<string, () => void>> = {
  kill: () => process.kill(process.pid, 'SIGKILL'),
  exit: () => process.exit(1),
}

/** Read once, because each access to the environment is a system call. */
const { SVC3_FAILPOINT, SVC3_TEST, NODE_ENV } = process.env
const named = SVC3_TEST === '1' || NODE_ENV === 'test' ? SVC3_FAILPOINT : undefined

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
