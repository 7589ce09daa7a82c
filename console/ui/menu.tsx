// Menus of actions, each disabled with a reason where it is not possible.
import { type KeyboardEvent, useId, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { showAt } from './anchored.ts'
import { Button } from './button.tsx'
import { type DrawDialog, openDialog } from './dialog.tsx'
import { Icon } from './icons.tsx'

export interface MenuItem {
  readonly label: string
  readonly reason?: string | undefined
  readonly isDanger?: boolean
  readonly dialog?: DrawDialog
  readonly onChoose?: () => void
}

export const runItem = ({ dialog, onChoose }: Pick<MenuItem, 'dialog' | 'onChoose'>): void => {
  if (dialog) openDialog(dialog)
  onChoose?.()
}

/** A function if the items are costly to compute: a table has a menu in every row. */
type Items = readonly MenuItem[] | (() => readonly MenuItem[])

interface Props {
  readonly label: string
  readonly items: Items
  readonly size?: 'small'
  /** The text of the button, which otherwise shows three dots. */
  readonly text?: string
}

export function Menu({ label, items, size, text }: Props) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  // Items are rendered only while the menu is open, because a table has many menus.
  const [isOpen, setOpen] = useState(false)
  /** ArrowUp opens the menu with the focus on its last item. */
  const [isFromEnd, setFromEnd] = useState(false)
  const typed = useRef({ text: '', atMs: 0 })
  const all = (): HTMLElement[] => [...(list.current?.querySelectorAll('button') ?? [])]
  const open = (fromEnd: boolean): void => {
    setFromEnd(fromEnd)
    // The popover element must exist before showPopover is called.
    flushSync(() => setOpen(true))
  }
  const move = (event: KeyboardEvent): void => {
    const items = all()
    const now = items.indexOf(document.activeElement as HTMLElement)
    const to = targetOf(event, now, items, typed.current)
    if (event.key === 'Tab') list.current?.hidePopover()
    if (to === undefined) return
    event.preventDefault()
    items.at(to)?.focus()
  }
  return (
    <>
      <button
        ref={button}
        type="button"
        className={text === undefined ? 'button button-icon' : 'button'}
        data-kind={text === undefined ? 'quiet' : undefined}
        data-size={size}
        aria-label={text === undefined ? label : undefined}
        aria-haspopup="menu"
        popoverTarget={id}
        onClick={() => open(false)}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
          event.preventDefault()
          open(event.key === 'ArrowUp')
          list.current?.showPopover()
        }}
      >
        {text}
        <Icon name="more" />
      </button>
      {isOpen && (
        <div
          ref={list}
          id={id}
          popover="auto"
          className="menu"
          role="menu"
          tabIndex={-1}
          aria-label={label}
          onKeyDown={move}
          onToggle={(event) => {
            if (event.newState !== 'open') setOpen(false)
            else if (list.current && button.current) {
              showAt(list.current, button.current)
              all()
                .at(isFromEnd ? -1 : 0)
                ?.focus()
            }
          }}
        >
          {(typeof items === 'function' ? items() : items).map((item, index) => (
            // The reason is outside the button so that it is not part of the accessible name.
            <div key={item.label} role="none" data-kind={item.isDanger ? 'danger' : undefined}>
              <button
                type="button"
                role="menuitem"
                aria-disabled={item.reason !== undefined || undefined}
                aria-describedby={item.reason === undefined ? undefined : `${id}${index}`}
                onClick={() => {
                  if (item.reason !== undefined) return
                  list.current?.hidePopover()
                  // A dialog opened by the item returns the focus to this button.
                  button.current?.focus()
                  runItem(item)
                }}
              >
                {item.label}
              </button>
              {item.reason !== undefined && <small id={`${id}${index}`}>{item.reason}</small>}
            </div>
          ))}
        </div>
      )}
    </>
  )
}

const wordMs = 600

/** The item that a key moves to: arrows, Home, End, and type-ahead as in the ARIA menu pattern. */
function targetOf(
  { key, ctrlKey, metaKey, altKey, timeStamp }: KeyboardEvent,
  now: number,
  items: readonly HTMLElement[],
  typed: { text: string; atMs: number },
): number | undefined {
  const count = items.length
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: (now + 1) % count,
    ArrowUp: (now - 1 + count) % count,
    Home: 0,
    End: count - 1,
  }
  if (steps[key] !== undefined) return steps[key]
  if (key.length !== 1 || key === ' ' || ctrlKey || metaKey || altKey) return undefined
  typed.text = (timeStamp - typed.atMs < wordMs ? typed.text : '') + key.toLowerCase()
  typed.atMs = timeStamp
  // Repeating a letter moves to the next match; typing more letters refines the match.
  const from = typed.text.length === 1 ? now + 1 : now
  const order = items.map((_, index) => (from + index) % count)
  return order.find((index) => items[index]?.textContent.toLowerCase().startsWith(typed.text))
}

interface ActionsProps {
  readonly name: string
  readonly items: Items
  /** Small in table rows. */
  readonly size?: 'small' | undefined
}

/** A button for each action that is possible now. */
export const NextActions = ({ items }: { readonly items: readonly MenuItem[] }) => (
  <div className="line">
    {items
      .filter(({ reason }) => reason === undefined)
      .map((item) => (
        <Button key={item.label} size="small" kind={item.isDanger ? 'danger' : undefined} onClick={() => runItem(item)}>
          {item.label}
        </Button>
      ))}
  </div>
)

export const ActionsMenu = ({ name, items, size }: ActionsProps) => (
  <Menu label={`Actions for ${name}`} items={items} {...(size ? { size } : { text: 'Actions' })} />
)
