// What went wrong, what to do next; what is empty, and how to begin.
import type { ReactNode } from 'react'
import { problemOf } from '../api/calls.ts'
import { texts } from '../texts.ts'
import { Code } from './copy.tsx'

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
      {requestId !== undefined && <span className="small mono">{texts.common.requestId(requestId)}</span>}
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
      {command !== undefined && <Code text={command} what={texts.common.command} />}
      {children}
    </div>
  )
}
