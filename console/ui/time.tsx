// Times as people say them, exact when pointed at. One clock for the whole page.
import { useSyncExternalStore } from 'react'
import { ago } from './time-words.ts'

const listeners = new Set<() => void>()
let nowMs = Date.now()
let timer: number | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= window.setInterval(() => {
    nowMs = Date.now()
    for (const each of listeners) each()
  }, 5_000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

export const useNow = (): number => useSyncExternalStore(subscribe, () => nowMs)

/** Made once: a table has many times. */
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

export function Time({ at }: { readonly at: string }) {
  const now = useNow()
  return (
    <time dateTime={at} title={exact.format(new Date(at))} className="nowrap">
      {ago(at, Math.max(now, Date.now()))}
    </time>
  )
}
