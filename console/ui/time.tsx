// Relative times with the exact time as a tooltip, updated by one timer for the whole page.
import { useSyncExternalStore } from 'react'
import { createListeners } from '../api/listeners.ts'
import { ago } from './time-words.ts'

const listeners = createListeners()
let nowMs = Date.now()
let timer: number | undefined

function subscribe(listener: () => void): () => void {
  const leave = listeners.subscribe(listener)
  timer ??= window.setInterval(() => {
    nowMs = Date.now()
    listeners.notify()
  }, 5_000)
  return () => {
    leave()
    if (listeners.count() > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** Creating a format is slow, and a table has many times. */
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** The current time, updated every few seconds. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => nowMs)

export function Time({ at }: { readonly at: string }) {
  const now = useNow()
  return (
    <time dateTime={at} title={exact.format(new Date(at))} className="nowrap">
      {ago(at, Math.max(now, Date.now()))}
    </time>
  )
}
