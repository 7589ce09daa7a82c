// The parts of every page: header, cards, facts, notes, and placeholders for loading and empty lists.
import { type ReactNode, useEffect } from 'react'
import { ConnectionError } from '../../src/client/transport.ts'
import { problemOf } from '../api/calls.ts'
import type { Snapshot } from '../api/live-list.ts'
import { Code } from './copy.tsx'

interface Props {
  readonly title: string
  readonly above?: ReactNode
  readonly beside?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export function Page({ title, above, beside, actions, children }: Props) {
  useEffect(() => {
    document.title = `${title} · svc3`
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

/** A lost connection is not repeated here: the frame has a banner for it. */
export const ListError = ({ list: { isLoaded, error } }: { readonly list: Snapshot<unknown> }) =>
  isLoaded && error instanceof ConnectionError ? null : <ErrorNote error={error} />

export const Loading = () => <div className="skeleton" role="status" aria-label="Loading…" />

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

/** A definition list; undefined values are omitted. */
export const Facts = ({ facts }: { readonly facts: Readonly<Record<string, ReactNode>> }) => (
  <dl className="facts">
    {Object.entries(facts).map(([label, value]) =>
      value === undefined ? null : (
        <div key={label} style={{ display: 'contents' }}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ),
    )}
  </dl>
)

export const Tags = ({ tags }: { readonly tags: readonly string[] }) => (
  <span className="line">
    {tags.map((tag) => (
      <span key={tag} className="tag">
        {tag}
      </span>
    ))}
  </span>
)

interface NoteProps {
  readonly tone?: 'good' | 'warn' | 'bad' | undefined
  readonly role?: 'alert' | 'status'
  readonly children: ReactNode
}

export const Note = ({ tone, role, children }: NoteProps) => (
  <div className="note" data-tone={tone} role={role}>
    {children}
  </div>
)

export function ErrorNote({ error }: { readonly error: unknown }) {
  if (error === undefined || error === null) return null
  const { message, hint, requestId } = problemOf(error)
  return (
    <Note tone="bad" role="alert">
      <b>{message}</b>
      {hint !== undefined && <span>{hint}</span>}
      {requestId !== undefined && <span className="small mono">{`Request ID ${requestId}`}</span>}
    </Note>
  )
}

interface EmptyProps {
  readonly title: string
  readonly text: string
  readonly command?: string | undefined
  readonly children?: ReactNode
}

export function Empty({ title, text, command, children }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      <p>{text}</p>
      {command !== undefined && <Code text={command} what="Show as command" />}
      {children}
    </div>
  )
}
