// Messages that disappear after a few seconds. Information that is needed longer belongs on the page.
import { useEffect, useSyncExternalStore } from 'react'
import { Link } from 'wouter'
import { createListeners } from '../api/listeners.ts'
import { Button } from './button.tsx'
import { Icon } from './icons.tsx'

interface Toast {
  readonly id: number
  readonly text: string
  /** A page with details. */
  readonly path: string | undefined
}

const listeners = createListeners()
let toasts: readonly Toast[] = []
let count = 0
const shownMs = 6_000
const maxToasts = 4

function set(next: readonly Toast[]): void {
  toasts = next.slice(-maxToasts)
  listeners.notify()
}

export function showToast(text: string, path?: string): void {
  set([...toasts, { id: ++count, text, path }])
}

const drop = (id: number): void => set(toasts.filter((each) => each.id !== id))

export function Toasts() {
  const shown = useSyncExternalStore(listeners.subscribe, () => toasts)
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <ToastView key={toast.id} toast={toast} />
      ))}
    </div>
  )
}

function ToastView({ toast }: { readonly toast: Toast }) {
  const { id, text, path } = toast
  useEffect(() => {
    const timer = setTimeout(() => drop(id), shownMs)
    return () => clearTimeout(timer)
  }, [id])
  return (
    <div className="toast">
      <span>
        {text} {path !== undefined && <Link href={path}>View</Link>}
      </span>
      <Button kind="quiet" size="small" className="button-icon" aria-label="Close" onClick={() => drop(id)}>
        <Icon name="close" />
      </Button>
    </div>
  )
}
