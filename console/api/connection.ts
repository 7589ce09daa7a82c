// Whether the live connection is there. Lost only after a moment: a blink is no news.
import { useSyncExternalStore } from 'react'

type Connection = 'open' | 'lost'
const listeners = new Set<() => void>()
let now: Connection = 'open'
let timer: number | undefined
const patienceMs = 1_500

function set(next: Connection): void {
  if (now === next) return
  now = next
  for (const listener of listeners) listener()
}

export function connectionOpened(): void {
  clearTimeout(timer)
  timer = undefined
  set('open')
}

export function connectionLost(): void {
  timer ??= window.setTimeout(() => set('lost'), patienceMs)
}

export const useConnection = (): Connection =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => now,
  )
