// A button that opens a list of actions, each with the reason where it may not be taken.
import { type KeyboardEvent, useId, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { texts } from '../texts.ts'
import { type DrawDialog, openDialog } from './dialog.tsx'
import { Icon } from './icons.tsx'

export interface MenuItem {
  readonly label: string
  readonly reason?: string | undefined
  readonly isDanger?: boolean
  /** What it does: a dialog of its own, or something else. */
  readonly dialog?: DrawDialog
  readonly onChoose?: () => void
}

export const choose = ({ dialog, onChoose }: Pick<MenuItem, 'dialog' | 'onChoose'>): void => {
  if (dialog) openDialog(dialog)
  onChoose?.()
}

interface Props {
  readonly label: string
  readonly items: readonly MenuItem[]
  readonly size?: 'small'
  /** Written on the button; otherwise it has three dots. */
  readonly text?: string
}

export function Menu({ label, items, size, text }: Props) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  // A table has many menus and at most one is open: the others are only their buttons.
  const [isOpen, setOpen] = useState(false)
  const place = (): void => {
    const [from, menu] = [button.current?.getBoundingClientRect(), list.current]
    if (!from || !menu) return
    const { offsetWidth: width, offsetHeight: height } = menu
    const below = from.bottom + 4 + height <= innerHeight
    menu.style.left = `${Math.max(8, Math.min(from.right - width, innerWidth - width - 8))}px`
    menu.style.top = `${below ? from.bottom + 4 : Math.max(8, from.top - height - 4)}px`
    menu.querySelector('button')?.focus()
  }
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const all = [...(list.current?.querySelectorAll('button') ?? [])]
    const now = all.indexOf(document.activeElement as HTMLButtonElement)
    all[(now + step + all.length) % all.length]?.focus()
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
        // It is there before the browser opens it, which it does when the click has been heard.
        onClick={() => flushSync(() => setOpen(true))}
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
            if (event.newState === 'open') place()
            else setOpen(false)
          }}
        >
          {items.map((item, index) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              data-kind={item.isDanger ? 'danger' : undefined}
              aria-disabled={item.reason !== undefined || undefined}
              aria-labelledby={`${id}${index}`}
              aria-describedby={item.reason === undefined ? undefined : `${id}${index}r`}
              onClick={() => {
                if (item.reason !== undefined) return
                list.current?.hidePopover()
                // Whatever opens now gives the focus back to it.
                button.current?.focus()
                choose(item)
              }}
            >
              <span id={`${id}${index}`}>{item.label}</span>
              {item.reason !== undefined && <small id={`${id}${index}r`}>{item.reason}</small>}
            </button>
          ))}
        </div>
      )}
    </>
  )
}

interface ActionsProps {
  readonly name: string
  readonly items: readonly MenuItem[]
  /** Small in the row of a table; otherwise with a word on the button. */
  readonly size?: 'small' | undefined
}

/** What can be done to one thing. */
export const ActionsMenu = ({ name, items, size }: ActionsProps) => (
  <Menu label={texts.common.actionsOf(name)} items={items} {...(size ? { size } : { text: texts.common.actions })} />
)
