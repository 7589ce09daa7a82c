// Modal dialogs, based on the dialog element, which traps the focus and closes on Esc.
import { Fragment, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'
import { createListeners } from '../api/listeners.ts'

/** Reserves the width of the scrollbar, which disappears while a dialog is open. */
function keepWidth(): void {
  const { style, clientWidth } = document.documentElement
  if (!document.querySelector('dialog:modal')) style.setProperty('--scrollbar', `${innerWidth - clientWidth}px`)
}

interface Props {
  readonly title: string
  readonly size?: 'large'
  /** Without it, Esc does not close the dialog. */
  readonly onClose?: (() => void) | undefined
  readonly children: ReactNode
}

export function Dialog({ title, size, onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  // The dialog must be closed before React removes it, or the browser does not restore the focus.
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: a dialog closes when the user leaves its page
  useEffect(() => close, [path])
  return shown && <Fragment key={shown.id}>{shown.draw(close)}</Fragment>
}
