// What every page has: a title, its actions, what is shown until its data is there.
import { type ReactNode, useEffect } from 'react'
import type { Snapshot } from '../api/live-list.ts'
import { texts } from '../texts.ts'
import { ErrorNote } from './notes.tsx'

interface Props {
  readonly title: string
  readonly above?: ReactNode
  readonly beside?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export function Page({ title, above, beside, actions, children }: Props) {
  useEffect(() => {
    document.title = `${title} · ${texts.product}`
  }, [title])
  return (
    <div className="page">
      <header className="page-head">
        <div className="page-title">
          {above !== undefined && <div className="crumbs">{above}</div>}
          <div className="line">
            <h1>{title}</h1>
            {beside}
          </div>
        </div>
        {actions !== undefined && <div className="line">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

interface LoadedProps<T> {
  readonly list: Snapshot<T>
  readonly empty?: ReactNode
  readonly children: ReactNode
}

/** A list that is there, or a place of its size; and what went wrong, above what was known before. */
export function Loaded<T>({ list, empty, children }: LoadedProps<T>) {
  const { items, isLoaded, error } = list
  if (!isLoaded) return error === undefined ? <Loading /> : <ErrorNote error={error} />
  return (
    <>
      <ErrorNote error={error} />
      {items.length === 0 && empty !== undefined ? empty : children}
    </>
  )
}

export const Loading = () => <div className="skeleton" role="status" aria-label={texts.common.loading} />

interface CardProps {
  readonly title: string
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export const Card = ({ title, actions, children }: CardProps) => (
  <section className="card">
    <div className="card-head">
      <h2>{title}</h2>
      {actions}
    </div>
    {children}
  </section>
)

export type Fact = readonly [label: string, value: ReactNode]

/** Names and values; those without a value are left out. */
export const Facts = ({ facts }: { readonly facts: readonly (Fact | undefined)[] }) => (
  <dl className="facts">
    {facts.map((fact) =>
      fact === undefined ? null : (
        <div key={fact[0]} style={{ display: 'contents' }}>
          <dt>{fact[0]}</dt>
          <dd>{fact[1]}</dd>
        </div>
      ),
    )}
  </dl>
)
