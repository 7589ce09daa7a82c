// Fields of forms: label, hint, and what is wrong, tied together for screen readers.
import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, useId } from 'react'

interface Around {
  readonly label: string
  readonly hint?: string | undefined
  readonly fault?: string | undefined
}

function useField({ label, hint, fault }: Around) {
  const id = useId()
  const [hintId, faultId] = [`${id}h`, `${id}f`]
  const control = {
    id,
    className: 'input',
    'aria-invalid': fault !== undefined || undefined,
    'aria-describedby': [fault && faultId, hint && hintId].filter(Boolean).join(' ') || undefined,
  }
  const wrap = (inner: ReactNode) => (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {inner}
      {fault !== undefined && (
        <span id={faultId} className="fault" role="alert">
          {fault}
        </span>
      )}
      {hint !== undefined && (
        <span id={hintId} className="hint">
          {hint}
        </span>
      )}
    </div>
  )
  return { control, wrap }
}

type InputProps = Around &
  Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value'> & {
    readonly value: string
    readonly onValue: (value: string) => void
    /** What is offered while somebody types. */
    readonly offers?: readonly string[]
  }

export function TextField({ label, hint, fault, value, onValue, offers, ...rest }: InputProps) {
  const { control, wrap } = useField({ label, hint, fault })
  const listId = `${control.id}l`
  return wrap(
    <>
      <input
        autoComplete="off"
        spellCheck={false}
        {...rest}
        {...control}
        list={offers ? listId : undefined}
        value={value}
        onChange={(event) => onValue(event.target.value)}
      />
      {offers && (
        <datalist id={listId}>
          {offers.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </>,
  )
}

type SecretProps = Around & {
  readonly onValue: (value: string) => void
  /** What a password store of the browser may do here. */
  readonly autoComplete?: 'off' | 'new-password'
}

/** Not controlled: React would write the value into the page as an attribute, where style sheets and extensions read. */
export function SecretField({ label, hint, fault, onValue, autoComplete = 'off' }: SecretProps) {
  const { control, wrap } = useField({ label, hint, fault })
  return wrap(
    <input
      {...control}
      type="password"
      autoComplete={autoComplete}
      spellCheck={false}
      onChange={(event) => onValue(event.target.value)}
    />,
  )
}

type AreaProps = Around & { readonly value: string; readonly onValue: (value: string) => void }

export function AreaField({ label, hint, fault, value, onValue }: AreaProps) {
  const { control, wrap } = useField({ label, hint, fault })
  return wrap(
    <textarea {...control} spellCheck={false} value={value} onChange={(event) => onValue(event.target.value)} />,
  )
}

export interface Choice {
  readonly value: string
  readonly label: string
}

type SelectProps = Around &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange' | 'value'> & {
    readonly value: string
    readonly onValue: (value: string) => void
    readonly choices: readonly Choice[]
  }

export function SelectField({ label, hint, fault, value, onValue, choices, ...rest }: SelectProps) {
  const { control, wrap } = useField({ label, hint, fault })
  return wrap(
    <select {...rest} {...control} value={value} onChange={(event) => onValue(event.target.value)}>
      {choices.map((each) => (
        <option key={each.value} value={each.value}>
          {each.label}
        </option>
      ))}
    </select>,
  )
}

interface CheckProps {
  readonly label: string
  readonly value: boolean
  readonly onValue: (value: boolean) => void
}

export function CheckField({ label, value, onValue }: CheckProps) {
  return (
    <label className="check">
      <input type="checkbox" checked={value} onChange={(event) => onValue(event.target.checked)} />
      <span>{label}</span>
    </label>
  )
}
