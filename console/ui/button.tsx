// Buttons. A disabled one stays focusable and explains why it is disabled.
import { type ButtonHTMLAttributes, useId } from 'react'

interface Props extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'disabled'> {
  readonly kind?: 'primary' | 'danger' | 'quiet' | undefined
  readonly size?: 'small' | undefined
  readonly isBusy?: boolean
  /** Why the button is disabled; undefined if it is not. */
  readonly reason?: string | undefined
}

export function Button({ kind, size, isBusy = false, reason, onClick, children, className, ...rest }: Props) {
  const id = useId()
  const isOff = isBusy || reason !== undefined
  return (
    <>
      <button
        type="button"
        {...rest}
        className={`button ${className ?? ''}`}
        data-kind={kind}
        data-size={size}
        aria-disabled={isOff || undefined}
        aria-busy={isBusy || undefined}
        aria-describedby={reason === undefined ? undefined : id}
        title={reason ?? rest.title}
        onClick={(event) => (isOff ? event.preventDefault() : onClick?.(event))}
      >
        {children}
      </button>
      {reason !== undefined && (
        <span id={id} className="hidden-text">
          {reason}
        </span>
      )}
    </>
  )
}
