// Whether the WebSocket is connected. A short interruption is not reported.
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

/** Calls the listener when a lost connection is back. */
export const onReconnect = (listener: () => void): (() => void) =>
  listeners.subscribe(() => {
    if (lostSince === undefined) listener()
  })

export const useLostSince = (): string | undefined => useSyncExternalStore(listeners.subscribe, () => lostSince)
