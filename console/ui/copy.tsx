// Copy buttons, which also work on pages loaded over plain HTTP.
import { useEffect, useState } from 'react'
import { Button } from './button.tsx'
import { Icon } from './icons.tsx'

export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  // navigator.clipboard exists only in secure contexts.
  const area = document.createElement('textarea')
  area.value = text
  const host = document.querySelector('dialog[open]') ?? document.body
  host.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  const [isDone, setDone] = useState(false)
  useEffect(() => {
    if (!isDone) return
    const timer = setTimeout(() => setDone(false), 1_600)
    return () => clearTimeout(timer)
  }, [isDone])
  const label = isDone ? 'Copied' : `Copy ${what}`
  return (
    <Button
      kind="quiet"
      size="small"
      className="button-icon"
      aria-label={label}
      title={label}
      onClick={() => copyText(text).then(() => setDone(true))}
    >
      <Icon name={isDone ? 'check' : 'copy'} />
    </Button>
  )
}

export function Code({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div className="code-line">
      <pre className="code">{text}</pre>
      <Copy text={text} what={what} />
    </div>
  )
}

export const Copyable = ({ text, what }: { readonly text: string; readonly what: string }) => (
  <span className="copyable mono">
    {text}
    <Copy text={text} what={what} />
  </span>
)
