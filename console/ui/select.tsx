// One of several: a field that opens a list, with the keys and the words for screen readers that Downshift has for it.
// Two of them: one to choose from, and one to type into that offers what is known.
import { type UseComboboxGetInputPropsOptions, type UseComboboxProps, useCombobox, useSelect } from 'downshift'
import { type InputHTMLAttributes, type KeyboardEvent, useLayoutEffect, useMemo, useRef } from 'react'
import { showAt } from './anchored.ts'
import { Icon } from './icons.tsx'

type Choice = readonly [value: string, label: string]

interface SelectProps {
  readonly id?: string
  /** Where no label stands beside it. */
  readonly label: string
  readonly labelId?: string
  readonly choices: readonly Choice[]
  readonly value: string
  readonly onValue: (value: string) => void
  readonly 'aria-invalid'?: boolean | undefined
  readonly 'aria-describedby'?: string | undefined
}

const wordOf = (choice: Choice | null): string => choice?.[1] ?? ''

/** In a dialog, Esc closes what is open in it first. */
const keepEscape = (isOpen: boolean) => (event: KeyboardEvent) => {
  if (event.key === 'Escape' && isOpen) event.preventDefault()
}

/** Shows the list at its field as long as it is open. */
function useShown<F extends HTMLElement>(isOpen: boolean, count: number) {
  const field = useRef<F>(null)
  const list = useRef<HTMLUListElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a list of another length has another place
  useLayoutEffect(() => {
    if (isOpen && list.current && field.current) showAt(list.current, field.current, { isField: true })
  }, [isOpen, count])
  return { field, list }
}

export function Select({ id, label, labelId, choices, value, onValue, ...described }: SelectProps) {
  const chosen = choices.find(([each]) => each === value) ?? null
  const select = useSelect<Choice>({
    items: choices as Choice[],
    itemToString: wordOf,
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
        <span>{wordOf(chosen)}</span>
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

interface OfferedProps extends Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value' | 'id'> {
  readonly id: string
  readonly label: string
  readonly value: string
  readonly onValue: (value: string) => void
  /** What is known; anything else may be typed as well. */
  readonly offers: readonly string[]
}

const maxOffered = 50

/** Leaving the field takes nothing that was not chosen. */
const reducer: NonNullable<UseComboboxProps<string>['stateReducer']> = (state, { type, changes }) =>
  type === useCombobox.stateChangeTypes.InputBlur ? { ...changes, selectedItem: state.selectedItem } : changes

export function OfferedInput({ id, label, value, onValue, offers, ...rest }: OfferedProps) {
  const typed = value.trim().toLowerCase()
  const offered = useMemo(() => {
    const found = offers.filter((each) => each.toLowerCase().includes(typed))
    // What is already there need not be offered.
    return found.length === 1 && found[0] === value ? [] : found.slice(0, maxOffered)
  }, [offers, typed, value])
  const combobox = useCombobox<string>({
    items: offered,
    inputValue: value,
    selectedItem: null,
    onSelectedItemChange: ({ selectedItem }) => selectedItem !== null && onValue(selectedItem),
    stateReducer: reducer,
    inputId: id,
  })
  const { highlightedIndex } = combobox
  const isOpen = combobox.isOpen && offered.length > 0
  const { field, list } = useShown<HTMLInputElement>(isOpen, offered.length)
  const press = (event: KeyboardEvent<HTMLInputElement>): void => {
    keepEscape(isOpen)(event)
    // Nothing of the list is meant: the key belongs to the form or its dialog.
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
          {offered.map((each, index) => (
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
