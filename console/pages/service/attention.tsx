// Problems in the fleet, first on the overview. Renders nothing if there are none.
import { Link } from 'wouter'
import { Card } from '../../ui/page.tsx'
import { State } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import type { Concern } from './fleet.ts'

const severities = { bad: 'Critical', warn: 'Warning' }

const shownConcerns = 6

export function Attention({ concerns }: { readonly concerns: readonly Concern[] }) {
  if (concerns.length === 0) return null
  const more = concerns.length - shownConcerns
  return (
    <Card title="Needs attention">
      <ul className="feed">
        {concerns.slice(0, shownConcerns).map(({ key, tone, text, cause, path, since }) => (
          <li key={key}>
            <span className="line">
              <State tone={tone} word={severities[tone]} />
              <Link href={path}>{text}</Link>
              {cause !== undefined && <span className="muted">{cause}</span>}
            </span>
            <span className="muted small">{since !== undefined && <Time at={since} />}</span>
          </li>
        ))}
      </ul>
      {more > 0 && <p className="muted">{`and ${more} more`}</p>}
    </Card>
  )
}
