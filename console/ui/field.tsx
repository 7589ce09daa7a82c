// Forms: their values, and fields with a label, hint and error that screen readers associate.
import {
  type ChangeEvent,
  createContext,
  type InputHTMLAttributes,
  type ReactNode,
  useContext,
  useEffect,
  useId,
  useState,
} from 'react'
import { useNamespaces } from '../api/namespaces.ts'
import { draftKey, dropDraft, keepInDraft, readDraft } from '../drafts.ts'
import { Combobox, Select } from './select.tsx'

/** Errors of the last request, by request field. */
export const Faults = createContext<ReadonlyMap<string, string>>(new Map())

export type Values = Readonly<Record<string, string | boolean>>
/** Widens the literal types of the initial values. */
export type Typed<T extends Values> = { readonly [K in keyof T]: T[K] extends boolean ? boolean : string }

export type Form<T extends Values> = ReturnType<typeof useForm<T>>

/**
 * The values of a form, kept over a reload. `field(name)` returns the props of the input for one value. `about` tells
 * forms with the same initial values on one page apart.
 */
export function useForm<T extends Values>(initial: T, about = '') {
  const [key] = useState(() => draftKey(about, initial))
  const [values, setValues] = useState<Typed<T>>(() => ({ ...(initial as Typed<T>), ...readDraft(key) }))
  // Runs when the form closes, but not when the page reloads.
  useEffect(() => () => dropDraft(key), [key])
  const change = (part: Partial<Typed<T>>): void => setValues((before) => ({ ...before, ...part }))
  const field = <K extends keyof T & string>(name: K) => ({
    field: name,
    value: values[name],
    onValue: (value: Typed<T>[K]): void => setValues((before) => ({ ...before, [name]: value })),
    onKeep: (value: string | boolean): void => keepInDraft(key, name, value),
  })
  return { values, change, field }
}

/** Omits empty values, for which the server has defaults. */
export const filled = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '' && value !== false))

interface Around {
  readonly label: string
  /** Keeps the value over a reload. Omitted for fields that may hold a secret. */
  readonly onKeep?: ((value: string | boolean) => void) | undefined
  readonly hint?: string | undefined
  readonly fault?: string | undefined
  /** `field` and `also` name fields of the request, whose errors are shown here. */
  readonly field?: string
  readonly also?: string
}

function useField({ label, hint, field = '', also = '', ...rest }: Around) {
  const id = useId()
  const faults = useContext(Faults)
  const fault = rest.fault ?? faults.get(field) ?? faults.get(also)
  const [labelId, hintId, faultId] = [`${id}l`, `${id}h`, `${id}f`]
  const control = {
    id,
    className: 'input',
    'aria-invalid': fault !== undefined || undefined,
    'aria-describedby': [fault && faultId, hint && hintId].filter(Boolean).join(' ') || undefined,
  }
  const wrap = (inner: ReactNode) => (
    <div className="field">
      <label id={labelId} htmlFor={id}>
        {label}
      </label>
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
  return { control, wrap, labelId }
}

type InputProps = Around &
  Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value'> & {
    readonly value: string
    readonly onValue: (value: string) => void
    /** Suggestions; other values are allowed. */
    readonly suggestions?: readonly string[]
  }

export function TextField({ label, hint, fault, field, also, value, onKeep, suggestions, ...props }: InputProps) {
  const { onValue: onTyped, ...rest } = props
  const onValue = (typed: string): void => {
    onTyped(typed)
    onKeep?.(typed)
  }
  const { control, wrap } = useField({ label, hint, fault, ...(field && { field }), ...(also && { also }) })
  const all = { autoComplete: 'off', spellCheck: false, ...rest, ...control }
  return wrap(
    suggestions ? (
      <Combobox {...all} label={label} suggestions={suggestions} value={value} onValue={onValue} />
    ) : (
      <input {...all} value={value} onChange={(event) => onValue(event.target.value)} />
    ),
  )
}

type SecretProps = Around & {
  /** Accepted so that `field(name)` can be spread; not rendered. */
  readonly value?: string
  readonly onValue: (value: string) => void
  readonly autoComplete?: 'off' | 'new-password'
}

/** Uncontrolled: React would write the value to an attribute, which style sheets and extensions can read. */
export function SecretField({ onValue, autoComplete = 'off', value: _, onKeep: __, ...around }: SecretProps) {
  const { control, wrap } = useField(around)
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

export function AreaField({ value, onValue, onKeep, ...around }: AreaProps) {
  const { control, wrap } = useField(around)
  const type = ({ target }: ChangeEvent<HTMLTextAreaElement>): void => {
    onValue(target.value)
    onKeep?.(target.value)
  }
  return wrap(<textarea {...control} spellCheck={false} value={value} onChange={type} />)
}

type SelectProps = AreaProps & {
  /** Labels by value. */
  readonly labels?: Readonly<Record<string, string>>
  /** Values that are shown as they are, after those in `labels`. */
  readonly choices?: readonly string[]
}

export function SelectField({ value, onValue, onKeep, labels = {}, choices = [], ...around }: SelectProps) {
  const { control, wrap, labelId } = useField(around)
  const all = [...Object.entries(labels), ...choices.map((each) => [each, each] as const)]
  const pick = (choice: string): void => {
    onValue(choice)
    onKeep?.(choice)
  }
  return wrap(<Select {...control} label={around.label} labelId={labelId} choices={all} value={value} onValue={pick} />)
}

export function NamespaceField({ value, onValue }: Pick<AreaProps, 'value' | 'onValue'>) {
  const { all } = useNamespaces()
  return <SelectField label="Namespace" value={value} onValue={onValue} choices={all} />
}

interface CheckProps extends Pick<Around, 'label' | 'field' | 'onKeep'> {
  readonly value: boolean
  readonly onValue: (value: boolean) => void
}

export function CheckField({ label, value, onValue, onKeep }: CheckProps) {
  const check = (isOn: boolean): void => {
    onValue(isOn)
    onKeep?.(isOn)
  }
  return (
    <label className="check">
      <input type="checkbox" checked={value} onChange={(event) => check(event.target.checked)} />
      <span>{label}</span>
    </label>
  )
}

interface SearchProps {
  readonly placeholder: string
  readonly value: string
  readonly onValue: (value: string) => void
}

export const SearchField = ({ placeholder, value, onValue }: SearchProps) => (
  <input
    type="search"
    className="input search"
    aria-label="Search"
    placeholder={placeholder}
    value={value}
    onChange={(event) => onValue(event.target.value)}
  />
)
