// The VMs of a namespace that wait, in the order in which they get a node: above the list, while there are any.
import { listQueue } from '../../../src/api/vms/queue.ts'
import { timeLeft } from '../../../src/rules/durations.ts'
import { useAnswer } from '../../api/calls.ts'
import { NameLink } from '../links.tsx'
import { vmPath } from '../paths.ts'
import { queueTexts as words } from './late-texts.ts'

const everyMs = 5_000
/** The list below has all of them. */
const shown = 10

export function Queue({ namespace }: { readonly namespace: string }) {
  const { data } = useAnswer(listQueue, { params: { namespace } }, everyMs)
  const items = data?.items ?? []
  if (items.length === 0) return null
  return (
    <section className="card" aria-label={words.title(items.length, namespace)}>
      <h2>{words.title(items.length, namespace)}</h2>
      <ol>
        {items.slice(0, shown).map(({ name, owner, message, expectedWaitSeconds }) => (
          <li key={name}>
            <NameLink name={name} path={vmPath({ namespace, name })} /> {words.line(owner, message)}{' '}
            <span className="muted">
              {expectedWaitSeconds === undefined ? words.unknown : words.expected(timeLeft(expectedWaitSeconds))}
            </span>
          </li>
        ))}
      </ol>
      {items.length > shown && <p className="muted">{words.more(items.length - shown)}</p>}
    </section>
  )
}
