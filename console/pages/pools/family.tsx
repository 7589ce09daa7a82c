// What pools and runner pools share: their page, pause and resume, and counts by reason.
import type { ReactNode } from 'react'
import type { Operation } from '../../../src/api/operation.ts'
import type { RawInput } from '../../../src/client/client.ts'
import type { Snapshot } from '../../api/live-list.ts'
import { type ActionWords, confirmed } from '../../ui/action-dialog.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { Card, DetailPage, Facts } from '../../ui/page.tsx'
import { State, type Tone } from '../../ui/state.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { type Acting, useActing } from '../acting.ts'
import { EventFeed } from '../event-feed.tsx'

interface Pausing {
  readonly name: string
  readonly operation: Operation
  readonly input: RawInput
  readonly reason: string | undefined
  readonly words: { readonly pause: ActionWords; readonly resume: ActionWords }
  readonly paused: boolean
  readonly noun: string
}

/** Always both items; the one that would change nothing is disabled with a reason. */
export const pausing = ({ words, paused, noun, input, reason, ...rest }: Pausing): readonly MenuItem[] =>
  (['pause', 'resume'] as const).map((action) => {
    const isSo = paused === (action === 'pause')
    return confirmed({
      ...rest,
      words: words[action],
      input: { ...input, body: { paused: action === 'pause' } },
      reason: reason ?? (isSo ? `The ${noun} is ${paused ? '' : 'not '}paused` : undefined),
    })
  })

interface Shared {
  readonly namespace: string
  readonly name: string
  readonly createdAt: string
}

interface PageProps<T extends Shared> extends Pick<Shared, 'namespace' | 'name'> {
  readonly list: Snapshot<T>
  readonly noun: string
  /** The list page. */
  readonly path: string
  /** The operation for Show as command. */
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
  readonly kind: string
  readonly stateOf: (pool: T) => { readonly tone: Tone; readonly word: string }
  readonly itemsOf: (pool: T, acting: Acting) => readonly MenuItem[]
  readonly children: (pool: T) => ReactNode
}

export function PoolPage<T extends Shared>(props: PageProps<T>) {
  const { list, noun, path, operation, params, kind, namespace, name, stateOf, itemsOf, children } = props
  const acting = useActing()
  return (
    <DetailPage
      list={list}
      name={name}
      namespace={namespace}
      path={path}
      noun={noun}
      beside={(pool) => <State {...stateOf(pool)} />}
      actions={(pool) => (
        <>
          <TeachPage operation={operation} input={{ params }} />
          <ActionsMenu name={name} items={itemsOf(pool, { ...acting, onDeleted: () => acting.go(path) })} />
        </>
      )}
    >
      {(pool) => (
        <>
          {children(pool)}
          <Card title="Events">
            <EventFeed namespaces={[namespace]} kinds={[kind]} name={name} since={pool.createdAt} empty="No events" />
          </Card>
        </>
      )}
    </DetailPage>
  )
}

interface CountsProps<R extends string> {
  readonly counts: Readonly<Partial<Record<R, number>>>
  readonly reasons: Readonly<Record<R, string>>
  readonly empty: string
}

/** Counts by reason. */
export function Counts<R extends string>({ counts, reasons, empty }: CountsProps<R>) {
  const found = Object.entries(counts) as [R, number][]
  if (found.length === 0) return <p className="muted">{empty}</p>
  return <Facts facts={Object.fromEntries(found.map(([reason, count]) => [reasons[reason], count]))} />
}
