// Buttons. One that may not be pressed stays in reach of the keyboard and says why.
import { type ButtonHTMLAttributes, useId } from 'react'

interface Props extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'disabled'> {
  readonly kind?: 'primary' | 'danger' | 'quiet' | undefined
  readonly size?: 'small' | undefined
  readonly isBusy?: boolean
  /** Why it may not be pressed now; undefined when it may. */
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
