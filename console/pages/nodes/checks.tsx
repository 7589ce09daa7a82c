// What the agent of a node found on its host: problems first, each with what to do, and the names of passed checks.
import type { HostCheck } from '../../../src/api/nodes/node-report.ts'
import { Card, Note } from '../../ui/page.tsx'

const kinds = [
  ['problem', 'Problem', 'bad'],
  ['warning', 'Warning', 'warn'],
] as const

/** The page then begins with the checks. */
export const hasProblem = (checks: readonly HostCheck[]): boolean => checks.some(({ result }) => result === 'problem')

export function HostChecks({ checks }: { readonly checks: readonly HostCheck[] }) {
  const of = (wanted: HostCheck['result']) => checks.filter(({ result }) => result === wanted)
  const passed = of('ok').map(({ check }) => check)
  return (
    <Card title="Host checks">
      {kinds.flatMap(([result, word, tone]) =>
        of(result).map(({ check, found, advice }) => (
          <Note key={check} tone={tone}>
            <b>{`${word}: ${check}`}</b>
            <span>{found}</span>
            {advice !== undefined && <span>{advice}</span>}
          </Note>
        )),
      )}
      {passed.length > 0 && <span className="muted">{`Passed: ${passed.join(', ')}`}</span>}
    </Card>
  )
}
