// The dialog of an action that was chosen from a menu. It stands beside the page, not in the row or card that it was chosen
// in: those may leave while somebody types, because lists are live.
import { Fragment, type ReactNode, useEffect, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'
import { createListeners } from '../api/listeners.ts'

/** Draws the dialog, which calls `onClose` when it is done. */
export type DrawDialog = (onClose: () => void) => ReactNode

interface Opened {
  readonly id: number
  readonly draw: DrawDialog
}

const listeners = createListeners()
let opened: Opened | undefined
let count = 0

function set(next: Opened | undefined): void {
  opened = next
  listeners.notify()
}

const close = (): void => set(undefined)

export const openDialog = (draw: DrawDialog): void => set({ id: ++count, draw })

export function OpenedDialog() {
  const shown = useSyncExternalStore(listeners.subscribe, () => opened)
  const [path] = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: it belongs to the page that it was opened on
  useEffect(() => close, [path])
  return shown && <Fragment key={shown.id}>{shown.draw(close)}</Fragment>
}
