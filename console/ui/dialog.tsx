// Dialogs over the page: the browser's own, which keep the focus inside and close on Esc.
import { Fragment, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'
import { createListeners } from '../api/listeners.ts'

/** The page cannot be scrolled behind a dialog, and must not jump by the width of the scrollbar that goes. */
function keepWidth(): void {
  const { style, clientWidth } = document.documentElement
  if (!document.querySelector('dialog:modal')) style.setProperty('--scrollbar', `${innerWidth - clientWidth}px`)
}

interface Props {
  readonly title: string
  readonly size?: 'large'
  /** Left out: it cannot be closed without an answer. */
  readonly onClose?: (() => void) | undefined
  readonly children: ReactNode
}

export function Dialog({ title, size, onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Closed before it leaves the page: only then does the browser give the focus back to where it was.
  useLayoutEffect(() => {
    const dialog = element.current
    if (dialog && !dialog.open) {
      keepWidth()
      dialog.showModal()
    }
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      className="dialog"
      data-size={size}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose?.()
      }}
    >
      <div className="dialog-body">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

/** Draws the dialog, which calls `onClose` when it is done. */
export type DrawDialog = (onClose: () => void) => ReactNode

interface Opened {
  readonly id: number
  readonly draw: DrawDialog
}

const listeners = createListeners()
let opened: Opened | undefined
let count = 0

function set(next: Opened | undefined): void {
  opened = next
  listeners.notify()
}

const close = (): void => set(undefined)

export const openDialog = (draw: DrawDialog): void => set({ id: ++count, draw })

export function OpenedDialog() {
  const shown = useSyncExternalStore(listeners.subscribe, () => opened)
  const [path] = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: it belongs to the page that it was opened on
  useEffect(() => close, [path])
  return shown && <Fragment key={shown.id}>{shown.draw(close)}</Fragment>
}
