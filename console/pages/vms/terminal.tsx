// A terminal: SSH through the server. The password stays in this form and in one message to the server.
import '@xterm/xterm/css/xterm.css'
import '../../styles/screen.css'
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import { isObject, parseJson } from '../../../src/api/json.ts'
import { openTerminal } from '../../../src/api/vms/terminals.ts'
import { socketUrl } from '../../api/urls.ts'
import { pathOf } from '../../show-as/requests.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { SecretField, TextField } from '../../ui/field.tsx'
import { Note, Page } from '../../ui/page.tsx'
import { type Named, vmPath } from '../paths.ts'

const scrollback = 5_000

interface Login {
  readonly user: string
  readonly password: string
}

export function TerminalPage({ namespace, name }: Named) {
  const [login, setLogin] = useState<Login>()
  const [notice, setNotice] = useState<string>()
  return (
    <Page title={`Terminal of ${name}`} above={<Link href={vmPath({ namespace, name })}>{name}</Link>}>
      {notice !== undefined && (
        <Note tone="warn" role="status">
          {notice}
        </Note>
      )}
      {login ? (
        <Session
          namespace={namespace}
          name={name}
          login={login}
          onEnd={(message) => {
            setNotice(message)
            setLogin(undefined)
          }}
        />
      ) : (
        <LoginForm
          namespace={namespace}
          name={name}
          onOpen={(next) => {
            setNotice(undefined)
            setLogin(next)
          }}
        />
      )}
    </Page>
  )
}

function LoginForm({ namespace, name, onOpen }: Named & { readonly onOpen: (login: Login) => void }) {
  const [user, setUser] = useState('admin')
  const [password, setPassword] = useState('')
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (user !== '') onOpen({ user, password })
  }
  return (
    <form className="card" onSubmit={submit}>
      <p className="muted">
        Connects by SSH through the server. User name and password are sent to the VM and not stored.
      </p>
      <div className="fields">
        <TextField label="User name" value={user} onValue={setUser} autoFocus />
        <SecretField label="Password" onValue={setPassword} />
      </div>
      <div className="line">
        <Button type="submit" kind="primary">
          Open terminal
        </Button>
      </div>
      <p className="muted">Or connect from your own terminal:</p>
      <Code text={`svc3 vm ssh ${name} -u ${user} -n ${namespace}`} what="Show as command" />
    </form>
  )
}

interface SessionProps extends Named {
  readonly login: Login
  readonly onEnd: (message: string) => void
}

const encoder = new TextEncoder()

function Session({ namespace, name, login, onEnd }: SessionProps) {
  const container = useRef<HTMLDivElement>(null)
  const end = useRef(onEnd)
  end.current = onEnd
  useEffect(() => {
    if (!container.current) return
    const terminal = new Terminal({ scrollback, fontSize: 13, cursorBlink: true, screenReaderMode: true })
    const fit = new FitAddon()
    terminal.loadAddon(fit)
    terminal.open(container.current)
    fit.fit()
    const socket = new WebSocket(socketUrl(pathOf(openTerminal, { params: { namespace, vm: name } })))
    socket.binaryType = 'arraybuffer'
    const send = (message: object): void => {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
    }
    const size = () => ({ columns: terminal.cols, rows: terminal.rows })
    let isOver = false
    const over = (message: string): void => {
      if (isOver) return
      isOver = true
      end.current(message)
    }
    socket.addEventListener('open', () => send({ type: 'open', ...login, ...size() }))
    socket.addEventListener('message', ({ data }) => {
      if (typeof data !== 'string') return terminal.write(new Uint8Array(data as ArrayBuffer))
      const message = parseJson(data)
      if (!isObject(message)) return
      if (message.type === 'opened') return terminal.focus()
      over([message.message, message.hint].filter(Boolean).join('. '))
      socket.close()
    })
    socket.addEventListener('close', ({ reason }) => over(reason || 'Session ended'))
    terminal.onData((typed) => socket.readyState === WebSocket.OPEN && socket.send(encoder.encode(typed)))
    terminal.onResize(() => send({ type: 'resize', ...size() }))
    const resized = new ResizeObserver(() => fit.fit())
    resized.observe(container.current)
    return () => {
      isOver = true
      resized.disconnect()
      socket.close()
      terminal.dispose()
    }
  }, [namespace, name, login])
  return <section ref={container} className="terminal keys-taken" aria-label="Terminal" />
}
