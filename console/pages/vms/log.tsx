// What a VM writes to its serial console, as it writes it: asked for when somebody wants to see it, and bounded.
import { useEffect, useRef, useState } from 'react'
import { getVmLogs, type Vm } from '../../../src/api/vms/vms.ts'
import { client } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorNote } from '../../ui/notes.tsx'
import { vmTexts as words } from './texts.ts'

const keptChars = 200_000

export function VmLog({ vm }: { readonly vm: Vm }) {
  const [isOpen, setOpen] = useState(false)
  return isOpen ? (
    <Follow vm={vm} />
  ) : (
    <div>
      <Button onClick={() => setOpen(true)}>{words.logShow}</Button>
    </div>
  )
}

function Follow({ vm: { namespace, name } }: { readonly vm: Vm }) {
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>()
  const [isOver, setOver] = useState(false)
  const box = useRef<HTMLPreElement>(null)
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    const follow = async (): Promise<void> => {
      const input = { params: { namespace, vm: name }, query: { follow: true, tail: 500 }, signal }
      const { body } = await client.open(getVmLogs, input)
      const decoder = new TextDecoder()
      for await (const chunk of body) {
        const more = decoder.decode(chunk, { stream: true })
        setText((before) => (before + more).slice(-keptChars))
      }
      setOver(true)
    }
    follow().catch((failure: unknown) => signal.aborted || setError(failure))
    return () => stop.abort()
  }, [namespace, name])
  // biome-ignore lint/correctness/useExhaustiveDependencies: follows what is written
  useEffect(() => {
    const pre = box.current
    if (pre) pre.scrollTop = pre.scrollHeight
  }, [text])
  return (
    <>
      <ErrorNote error={error} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <pre ref={box} className="code log" role="log" aria-label={words.log} tabIndex={0}>
        {text === '' ? words.logEmpty : text}
      </pre>
      {isOver && <p className="muted small">{words.logEnded}</p>}
    </>
  )
}
