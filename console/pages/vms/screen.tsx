// The screen of a VM: VNC through the server.
import '../../styles/screen.css'
import type RFB from '@novnc/novnc'
import { useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import { connectVm } from '../../../src/api/vms/vms.ts'
import { Button } from '../../ui/button.tsx'
import { Copy } from '../../ui/copy.tsx'
import { AreaField, CheckField, TextField } from '../../ui/field.tsx'
import { Page } from '../../ui/page.tsx'
import { ShowAsButton } from '../../ui/show-as.tsx'
import { State } from '../../ui/state.tsx'
import { type Named, vmPath } from '../paths.ts'
import { keysymOf } from './model.ts'
import { openScreen } from './open-screen.ts'

type Phase = 'connecting' | 'connected' | 'ended'
const tones = { connecting: 'busy', connected: 'good', ended: 'bad' } as const
const phaseWords = { connecting: 'Connecting…', connected: 'Connected', ended: 'Disconnected' }

export function Screen({ namespace, name }: Named) {
  const [attempt, setAttempt] = useState(1)
  const [phase, setPhase] = useState<Phase>('connecting')
  const [isScaled, setScaled] = useState(true)
  const [clipboard, setClipboard] = useState('')
  const container = useRef<HTMLDivElement>(null)
  const rfb = useRef<RFB>(undefined)
  const input = { params: { namespace, vm: name } }

  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt is a new connection
  useEffect(() => {
    const target = container.current
    if (!target) return
    setPhase('connecting')
    const unmounted = new AbortController()
    const { signal } = unmounted
    const onOpen = (client: RFB): void => {
      client.scaleViewport = isScaled
      client.focusOnClick = true
      client.addEventListener('connect', () => {
        setPhase('connected')
        client.focus()
      })
      client.addEventListener('disconnect', () => setPhase('ended'))
      client.addEventListener('clipboard', (event) => setClipboard(event.detail.text))
      rfb.current = client
    }
    openScreen(target, { namespace, name }, signal, onOpen).catch(() => signal.aborted || setPhase('ended'))
    return () => {
      rfb.current?.disconnect()
      rfb.current = undefined
      unmounted.abort()
    }
  }, [namespace, name, attempt])

  useEffect(() => {
    if (rfb.current) rfb.current.scaleViewport = isScaled
  }, [isScaled])

  const isOff = phase === 'connected' ? undefined : phaseWords[phase]
  return (
    <Page
      title={`Screen of ${name}`}
      above={<Link href={vmPath({ namespace, name })}>{name}</Link>}
      beside={<State tone={tones[phase]} word={phaseWords[phase]} />}
      actions={
        <>
          <ShowAsButton operation={connectVm} input={input} />
          {phase === 'ended' && (
            <Button kind="primary" onClick={() => setAttempt(attempt + 1)}>
              Reconnect
            </Button>
          )}
          <Button reason={isOff} onClick={() => rfb.current?.sendCtrlAltDel()}>
            Ctrl+Alt+Del
          </Button>
          <Button reason={isOff} onClick={() => void container.current?.requestFullscreen()}>
            Full screen
          </Button>
        </>
      }
    >
      <section
        ref={container}
        className="screen keys-taken"
        data-scaled={isScaled}
        aria-label="VM screen. Keys go to the VM while the screen has focus."
      />
      <div className="grid-2">
        <div className="stack">
          <CheckField label="Fit to window" value={isScaled} onValue={setScaled} />
          <SendKeys
            reason={isOff}
            onSend={(text) => {
              for (const letter of text) rfb.current?.sendKey(keysymOf(letter), null)
            }}
          />
        </div>
        <div className="stack-tight">
          <AreaField
            label="Clipboard"
            hint="Send copies this text to the clipboard of the VM; text copied in the VM appears here. If the VM does not share its clipboard, use Send keys."
            value={clipboard}
            onValue={setClipboard}
          />
          <div className="line">
            <Button reason={isOff} onClick={() => rfb.current?.clipboardPasteFrom(clipboard)}>
              Send
            </Button>
            {clipboard !== '' && <Copy text={clipboard} what="Clipboard" />}
          </div>
        </div>
      </div>
    </Page>
  )
}

interface SendProps {
  readonly reason: string | undefined
  readonly onSend: (text: string) => void
}

function SendKeys({ reason, onSend }: SendProps) {
  const [text, setText] = useState('')
  return (
    <form
      className="stack-tight"
      onSubmit={(event) => {
        event.preventDefault()
        if (reason !== undefined) return
        onSend(`${text}\n`)
        setText('')
      }}
    >
      <TextField label="Send keys" hint="Types the text into the VM and presses Enter" value={text} onValue={setText} />
      <div>
        <Button type="submit" reason={reason}>
          Send
        </Button>
      </div>
    </form>
  )
}
