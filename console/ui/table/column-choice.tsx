// The user's choice of columns and widths per table, kept in localStorage, and the dialog to change it.
import { useMemo, useSyncExternalStore } from 'react'
import { createListeners } from '../../api/listeners.ts'
import { consoleUrl } from '../../api/urls.ts'
import { Button } from '../button.tsx'
import { Dialog, openDialog } from '../dialog.tsx'
import { CheckField } from '../field.tsx'
import { type Choice, choiceFrom, isChoosable, noChoice, shownColumns } from './columns.ts'

const listeners = createListeners()
const keyOf = (table: string): string => `svc3.columns ${consoleUrl.pathname} ${table}`

export function useChoice(table: string): Choice {
  const stored = useSyncExternalStore(listeners.subscribe, () => localStorage.getItem(keyOf(table)))
  return useMemo(() => choiceFrom(stored), [stored])
}

export function chooseColumns(table: string, change: (before: Choice) => Choice): void {
  const key = keyOf(table)
  const next = change(choiceFrom(localStorage.getItem(key)))
  if (next === noChoice) localStorage.removeItem(key)
  else localStorage.setItem(key, JSON.stringify(next))
  listeners.notify()
}

interface Props {
  readonly table: string
  readonly columns: readonly { readonly title: string; readonly look?: string }[]
  /** The width of the table, which decides which columns are visible by default. */
  readonly widthPx: () => number
}

export const ColumnsButton = (props: Props) => (
  <Button kind="quiet" onClick={() => openDialog((onClose) => <ColumnsDialog {...props} onClose={onClose} />)}>
    Columns
  </Button>
)

function ColumnsDialog({ table, columns, widthPx, onClose }: Props & { readonly onClose: () => void }) {
  const choice = useChoice(table)
  const shown = shownColumns(columns, choice, widthPx())
  return (
    <Dialog title="Columns" onClose={onClose}>
      <div className="stack-tight">
        {columns.filter(isChoosable).map((column) => (
          <CheckField
            key={column.title}
            label={column.title}
            value={shown.includes(column)}
            onValue={(isShown) =>
              chooseColumns(table, (before) => ({ ...before, shown: { ...before.shown, [column.title]: isShown } }))
            }
          />
        ))}
      </div>
      <div className="dialog-foot">
        <Button kind="quiet" onClick={() => chooseColumns(table, () => noChoice)}>
          Reset columns
        </Button>
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  )
}
