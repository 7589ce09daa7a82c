// The dialog of an action that was chosen from a menu. It stands beside the page, not in the row or card that it was chosen
// in: those may leave while somebody types, because lists are live.
import { Fragment, type ReactNode, useEffect, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'

interface Opened {
  readonly id: number
  readonly draw: (onClose: () => void) => ReactNode
}

const listeners = new Set<() => void>()
let opened: Opened | undefined
let count = 0

function set(next: Opened | undefined): void {
  opened = next
  for (const listener of listeners) listener()
}

const close = (): void => set(undefined)

export const openDialog = (draw: Opened['draw']): void => set({ id: ++count, draw })

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

export function OpenedDialog() {
  const shown = useSyncExternalStore(subscribe, () => opened)
  const [path] = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: it belongs to the page that it was opened on
  useEffect(() => close, [path])
  return shown && <Fragment key={shown.id}>{shown.draw(close)}</Fragment>
}
