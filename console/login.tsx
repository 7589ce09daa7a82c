// The login page: through the identity provider or with a token. The page does not keep the token.
import { type FormEvent, useState } from 'react'
import { useLocation } from 'wouter'
import { logIn, providerUrl, useSession } from './api/session.ts'
import { Button } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { SecretField } from './ui/field.tsx'
import { Logo } from './ui/icons.tsx'
import { ErrorNote, Note } from './ui/page.tsx'

const providers = { builtIn: 'Log in with email and password', own: 'Log in with your identity provider' }

export function Login() {
  const { phase, provider, problem } = useSession()
  const [path] = useLocation()
  return (
    <main className="login">
      <div className="login-card">
        <div className="brand">
          <Logo />
          <h1>Log in to svc3</h1>
        </div>
        {problem !== undefined && (
          <Note tone="bad" role="alert">
            {problem}
          </Note>
        )}
        {phase === 'unreachable' ? (
          <Note tone="warn" role="status">
            The server is not responding. This page reconnects automatically.
          </Note>
        ) : (
          <>
            {provider && (
              <>
                <a className="button" data-kind="primary" href={providerUrl(path)}>
                  {providers[provider]}
                </a>
                <div className="or">or use a token</div>
              </>
            )}
            <TokenForm isMain={!provider} />
          </>
        )}
      </div>
    </main>
  )
}

/** Shown over the page when the session has ended, so that nothing typed is lost. */
export function LoginAgain() {
  const { provider } = useSession()
  const [path] = useLocation()
  return (
    <Dialog title="Session ended">
      <p className="muted">Log in again to continue. Everything you typed is still here.</p>
      <TokenForm isMain />
      {provider && <a href={providerUrl(path)}>{`${providers[provider]} (leaves this page)`}</a>}
    </Dialog>
  )
}

function TokenForm({ isMain }: { readonly isMain: boolean }) {
  const [token, setToken] = useState('')
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (token.trim() === '' || isBusy) return
    setBusy(true)
    setError(undefined)
    try {
      await logIn(token.trim())
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form className="stack" onSubmit={submit}>
      <SecretField label="Token" hint="Run svc3 user get-token to print yours" onValue={setToken} />
      <ErrorNote error={error} />
      <Button type="submit" kind={isMain ? 'primary' : undefined} isBusy={isBusy}>
        Log in
      </Button>
      <p className="small muted">The token is sent to the server once. The browser does not store it.</p>
    </form>
  )
}
