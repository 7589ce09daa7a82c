// The error boundary of a page.
import { Component, type ReactNode } from 'react'
import { Button } from './ui/button.tsx'

interface Props {
  readonly children: ReactNode
}

export class ErrorBoundary extends Component<Props, { readonly error: unknown }> {
  override state = { error: undefined as unknown }

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error }
  }

  override render(): ReactNode {
    const { error } = this.state
    if (error === undefined) return this.props.children
    return (
      <div className="page">
        <h1>Something went wrong</h1>
        <p>This page crashed. Your VMs are not affected. Reload the page to try again.</p>
        <pre className="code">{error instanceof Error ? error.message : String(error)}</pre>
        <div>
          <Button kind="primary" onClick={() => location.reload()}>
            Reload
          </Button>
        </div>
      </div>
    )
  }
}
