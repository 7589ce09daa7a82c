// Whether the live connection is there, and since when it is not. Lost only after a moment: a blink is no news.
import { useSyncExternalStore } from 'react'
import { createListeners } from './listeners.ts'

const listeners = createListeners()
let lostSince: string | undefined
let timer: number | undefined
const timeoutMs = 1_500

export function connectionOpened(): void {
  clearTimeout(timer)
  timer = undefined
  if (lostSince === undefined) return
  lostSince = undefined
  listeners.notify()
}

export function connectionLost(): void {
  if (timer !== undefined) return
  const since = new Date().toISOString()
  timer = window.setTimeout(() => {
    lostSince = since
    listeners.notify()
  }, timeoutMs)
}

/** Calls when it is back after it was lost. */
export const onReconnect = (listener: () => void): (() => void) =>
  listeners.subscribe(() => {
    if (lostSince === undefined) listener()
  })

/** Since when there is none; undefined while there is one. */
export const useLostSince = (): string | undefined => useSyncExternalStore(listeners.subscribe, () => lostSince)
