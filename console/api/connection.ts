// Whether the live connection is there. Lost only after a moment: a blink is no news.
import { useSyncExternalStore } from 'react'
import { createListeners } from './listeners.ts'

type Connection = 'open' | 'lost'
const listeners = createListeners()
let now: Connection = 'open'
let timer: number | undefined
const patienceMs = 1_500

function set(next: Connection): void {
  if (now === next) return
  now = next
  listeners.notify()
}

export function connectionOpened(): void {
  clearTimeout(timer)
  timer = undefined
  set('open')
}

export function connectionLost(): void {
  timer ??= window.setTimeout(() => set('lost'), patienceMs)
}

export const useConnection = (): Connection => useSyncExternalStore(listeners.subscribe, () => now)
