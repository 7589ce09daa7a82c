// Select and combobox, with the keyboard and screen reader support of Downshift.
import { type UseComboboxGetInputPropsOptions, type UseComboboxProps, useCombobox, useSelect } from 'downshift'
import { type InputHTMLAttributes, type KeyboardEvent, useLayoutEffect, useMemo, useRef } from 'react'
import { showAt } from './anchored.ts'
import { Icon } from './icons.tsx'

type Choice = readonly [value: string, label: string]

interface SelectProps {
  readonly id?: string
  /** The accessible name, if no label element names the control. */
  readonly label: string
  readonly labelId?: string
  readonly choices: readonly Choice[]
  readonly value: string
  readonly onValue: (value: string) => void
  readonly 'aria-invalid'?: boolean | undefined
  readonly 'aria-describedby'?: string | undefined
}

const labelOf = (choice: Choice | null): string => choice?.[1] ?? ''

/** Esc closes an open list before it closes the dialog. */
const keepEscape = (isOpen: boolean) => (event: KeyboardEvent) => {
  if (event.key === 'Escape' && isOpen) event.preventDefault()
}

function useShown<F extends HTMLElement>(isOpen: boolean, count: number) {
  const field = useRef<F>(null)
  const list = useRef<HTMLUListElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the position depends on the number of choices
  useLayoutEffect(() => {
    if (isOpen && list.current && field.current) showAt(list.current, field.current, { isField: true })
  }, [isOpen, count])
  return { field, list }
}

export function Select({ id, label, labelId, choices, value, onValue, ...described }: SelectProps) {
  const chosen = choices.find(([each]) => each === value) ?? null
  const select = useSelect<Choice>({
    items: choices as Choice[],
    itemToString: labelOf,
    itemToKey: (choice) => choice?.[0],
    selectedItem: chosen,
    onSelectedItemChange: ({ selectedItem }) => selectedItem !== null && onValue(selectedItem[0]),
    ...(id !== undefined && { toggleButtonId: id }),
    ...(labelId !== undefined && { labelId }),
  })
  const { isOpen, highlightedIndex } = select
  const { field, list } = useShown<HTMLButtonElement>(isOpen, choices.length)
  return (
    <>
      <button
        {...select.getToggleButtonProps({ ref: field, onKeyDown: keepEscape(isOpen) })}
        type="button"
        aria-label={labelId === undefined ? label : undefined}
        aria-labelledby={labelId}
        data-value={value}
        {...described}
        className="input select-field"
      >
        <span>{labelOf(chosen)}</span>
        <Icon name="down" />
      </button>
      {isOpen && (
        <ul
          {...select.getMenuProps({ ref: list }, { suppressRefError: true })}
          popover="manual"
          className="menu choices"
          aria-labelledby={undefined}
          aria-label={`Choices for ${label}`}
        >
          {choices.map((choice, index) => (
            <li
              key={choice[0]}
              {...select.getItemProps({ item: choice, index })}
              data-at={index === highlightedIndex || undefined}
            >
              <span>{choice[1]}</span>
              {choice === chosen && <Icon name="check" />}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

interface ComboboxProps extends Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value' | 'id'> {
  readonly id: string
  readonly label: string
  readonly value: string
  readonly onValue: (value: string) => void
  /** Suggestions; other values are allowed. */
  readonly suggestions: readonly string[]
}

const maxOffered = 50

/** Leaving the field must not select the highlighted suggestion. */
const reducer: NonNullable<UseComboboxProps<string>['stateReducer']> = (state, { type, changes }) =>
  type === useCombobox.stateChangeTypes.InputBlur ? { ...changes, selectedItem: state.selectedItem } : changes

export function Combobox({ id, label, value, onValue, suggestions, ...rest }: ComboboxProps) {
  const typed = value.trim().toLowerCase()
  const matching = useMemo(() => {
    const found = suggestions.filter((each) => each.toLowerCase().includes(typed))
    // A suggestion that equals the value is not offered if it is the only one.
    return found.length === 1 && found[0] === value ? [] : found.slice(0, maxOffered)
  }, [suggestions, typed, value])
  const combobox = useCombobox<string>({
    items: matching,
    inputValue: value,
    selectedItem: null,
    onSelectedItemChange: ({ selectedItem }) => selectedItem !== null && onValue(selectedItem),
    stateReducer: reducer,
    inputId: id,
  })
  const { highlightedIndex } = combobox
  const isOpen = combobox.isOpen && matching.length > 0
  const { field, list } = useShown<HTMLInputElement>(isOpen, matching.length)
  const press = (event: KeyboardEvent<HTMLInputElement>): void => {
    keepEscape(isOpen)(event)
    // Without a highlighted item these keys belong to the form or the dialog.
    if ((event.key === 'Enter' && highlightedIndex < 0) || (event.key === 'Escape' && !isOpen))
      Object.assign(event.nativeEvent, { preventDownshiftDefault: true })
  }
  const own: UseComboboxGetInputPropsOptions = {
    ref: field,
    onKeyDown: press,
    onChange: ({ currentTarget }) => onValue((currentTarget as HTMLInputElement).value),
  }
  return (
    <>
      <input
        autoComplete="off"
        spellCheck={false}
        {...rest}
        {...combobox.getInputProps(own)}
        role="combobox"
        aria-labelledby={undefined}
        aria-expanded={isOpen}
      />
      {isOpen && (
        <ul
          {...combobox.getMenuProps({ ref: list }, { suppressRefError: true })}
          popover="manual"
          className="menu choices"
          aria-labelledby={undefined}
          aria-label={`Choices for ${label}`}
        >
          {matching.map((each, index) => (
            <li
              key={each}
              {...combobox.getItemProps({ item: each, index })}
              data-at={index === highlightedIndex || undefined}
            >
              <span>{each}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
