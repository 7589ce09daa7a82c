// Which rows of a long table are in the window, or near it: told anew when enough of it was scrolled, once a frame at most.
import { type RefObject, useEffect, useState } from 'react'
import { flushSync } from 'react-dom'

/** Rows that are drawn beyond each edge: as far as a wheel turns in a few frames. */
const beyond = 12
/** Drawn and dropped by so many at once. */
const step = 4

const rowsInWindow = (rowPx: number): number => Math.ceil(innerHeight / rowPx)

type Range = readonly [from: number, to: number]

export function useRowsInSight(body: RefObject<HTMLElement | null>, count: number, rowPx: number): Range {
  const [first, setFirst] = useState(0)
  const [seen, setSeen] = useState(() => rowsInWindow(rowPx))
  useEffect(() => {
    let last = -1
    const look = (): void => {
      const above = -(body.current?.getBoundingClientRect().top ?? 0) / rowPx
      const next = Math.max(0, Math.floor(above / step) * step)
      if (next !== last) setFirst(next)
      last = next
    }
    // In the frame that was scrolled for, not in the one after it.
    const scrolled = (): void => flushSync(look)
    const resized = (): void => {
      setSeen(rowsInWindow(rowPx))
      look()
    }
    look()
    addEventListener('scroll', scrolled, { passive: true })
    addEventListener('resize', resized)
    return () => {
      removeEventListener('scroll', scrolled)
      removeEventListener('resize', resized)
    }
  }, [body, rowPx])
  const from = Math.max(0, Math.min(first, count - seen) - beyond)
  return [from, Math.min(count, first + seen + step + beyond)]
}
