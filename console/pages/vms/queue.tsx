// VMs waiting for a node, in the order in which they are scheduled. Shown above the list of VMs.
import { listQueue } from '../../../src/api/vms/queue.ts'
import { timeLeft } from '../../../src/rules/durations.ts'
import { useAnswer } from '../../api/calls.ts'
import { count } from '../../ui/sizes.ts'
import { NameLink } from '../links.tsx'
import { vmPath } from '../paths.ts'

const titleOf = (waiting: number, namespace: string) => `${count(waiting, 'VM waits', 'VMs wait')} in ${namespace}`

const everyMs = 5_000
const shown = 10

export function QueueCard({ namespace }: { readonly namespace: string }) {
  const { data } = useAnswer(listQueue, { params: { namespace } }, { everyMs })
  const items = data?.items ?? []
  if (items.length === 0) return null
  return (
    <section className="card" aria-label={titleOf(items.length, namespace)}>
      <h2>{titleOf(items.length, namespace)}</h2>
      <ol>
        {items.slice(0, shown).map(({ name, owner, message, expectedWaitSeconds }) => (
          <li key={name}>
            <NameLink name={name} path={vmPath({ namespace, name })} /> {`${owner}: ${message}.`}{' '}
            <span className="muted">
              {expectedWaitSeconds === undefined
                ? 'Expected wait: unknown'
                : `Expected wait: ${timeLeft(expectedWaitSeconds)}`}
            </span>
          </li>
        ))}
      </ol>
      {items.length > shown && <p className="muted">{`and ${items.length - shown} more`}</p>}
    </section>
  )
}
