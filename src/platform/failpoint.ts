// Places where a test lets the process die: SVC3_FAILPOINT=name as if by kill -9, SVC3_FAILPOINT=name:exit by an exit.
// Without SVC3_TEST=1 or NODE_ENV=test nothing happens.

const endings: Readonly<Record<string, () => void>> = {
  kill: () => process.kill(process.pid, 'SIGKILL'),
  exit: () => process.exit(1),
}

/** Does nothing but for a test that named this point: then the process ends here. */
export function failpoint(name: string): void {
  const { SVC3_FAILPOINT, SVC3_TEST, NODE_ENV } = process.env
  if (SVC3_FAILPOINT === undefined || (SVC3_TEST !== '1' && NODE_ENV !== 'test')) return
  const [wanted, ending = 'kill'] = SVC3_FAILPOINT.split(':')
  if (wanted === name) endings[ending]?.()
}
