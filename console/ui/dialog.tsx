// A dialog over the page: the browser's own, which keeps the focus inside and closes on Esc.
import { type ReactNode, useId, useLayoutEffect, useRef } from 'react'

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
    if (dialog && !dialog.open) dialog.showModal()
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
