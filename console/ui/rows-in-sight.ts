// Which rows of a long table are in the window, or near it: told anew when enough of it was scrolled, once a frame at most.
import { type RefObject, useEffect, useState } from 'react'
import { flushSync } from 'react-dom'

/** Rows that are drawn beyond each edge: as far as a wheel turns in a few frames. */
const beyond = 12
/** Drawn and dropped by so many at once. */
const step = 4

type Range = readonly [from: number, to: number]

/** Of a body as high as all its rows, which are of one height. */
export function useRowsInSight(body: RefObject<HTMLElement | null>, count: number): Range {
  const [sight, setSight] = useState({ first: 0, seen: 0 })
  useEffect(() => {
    const look = (): void => {
      if (!body.current) return
      const { top, height } = body.current.getBoundingClientRect()
      const rowPx = height / count
      const first = Math.max(0, Math.floor(-top / rowPx / step) * step)
      const seen = Math.ceil(innerHeight / rowPx) + step
      setSight((known) => (known.first === first && known.seen === seen ? known : { first, seen }))
    }
    // In the frame that was scrolled for, not in the one after it.
    const scrolled = (): void => flushSync(look)
    look()
    addEventListener('scroll', scrolled, { passive: true })
    addEventListener('resize', look)
    return () => {
      removeEventListener('scroll', scrolled)
      removeEventListener('resize', look)
    }
  }, [body, count])
  const { first, seen } = sight
  return [Math.max(0, Math.min(first, count - seen) - beyond), Math.min(count, first + seen + beyond)]
}
