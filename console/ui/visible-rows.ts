// Which rows of a long table are in the window, or near it: worked out anew as it is scrolled, once a frame at most.
import { type RefObject, useEffect, useState } from 'react'
import { flushSync } from 'react-dom'

/** Rows that are drawn beyond each edge: as far as a wheel turns in a few frames. */
const beyond = 12
/** Drawn and dropped by so many at once. */
const step = 4

type Range = readonly [from: number, to: number]

/** Of a body as high as all its rows, which are of one height. */
export function useVisibleRows(body: RefObject<HTMLElement | null>, count: number): Range {
  const [view, setView] = useState({ first: 0, fitting: 0 })
  useEffect(() => {
    const look = (): void => {
      if (!body.current) return
      const { top, height } = body.current.getBoundingClientRect()
      const rowPx = height / count
      const first = Math.max(0, Math.floor(-top / rowPx / step) * step)
      const fitting = Math.ceil(innerHeight / rowPx) + step
      setView((known) => (known.first === first && known.fitting === fitting ? known : { first, fitting }))
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
  const { first, fitting } = view
  return [Math.max(0, Math.min(first, count - fitting) - beyond), Math.min(count, first + fitting + beyond)]
}
