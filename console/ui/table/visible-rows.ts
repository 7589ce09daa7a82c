// Which rows of a long table are in or near the window, updated while scrolling.
import { type RefObject, useEffect, useState } from 'react'
import { flushSync } from 'react-dom'

/** Rows drawn beyond each edge, so that fast scrolling shows no gaps. */
const beyond = 12
/** The granularity of the range, to render less often. */
const step = 4

/** How long after the last scroll event scrolling counts as finished. */
const restMs = 150

interface Range {
  readonly from: number
  readonly to: number
  readonly isMoving: boolean
}

/** The body is as tall as all rows together, and all rows have one height. */
export function useVisibleRows(body: RefObject<HTMLElement | null>, count: number): Range {
  const [view, setView] = useState({ first: 0, fitting: 0 })
  const [isMoving, setMoving] = useState(false)
  useEffect(() => {
    let timer: number | undefined
    const measure = (): void => {
      if (!body.current) return
      const { top, height } = body.current.getBoundingClientRect()
      const rowPx = height / count
      const first = Math.max(0, Math.floor(-top / rowPx / step) * step)
      const fitting = Math.ceil(innerHeight / rowPx) + step
      setView((known) => (known.first === first && known.fitting === fitting ? known : { first, fitting }))
    }
    // flushSync renders in the same frame as the scroll event.
    const scrolled = (): void => {
      clearTimeout(timer)
      timer = window.setTimeout(() => setMoving(false), restMs)
      flushSync(() => {
        setMoving(true)
        measure()
      })
    }
    measure()
    addEventListener('scroll', scrolled, { passive: true })
    addEventListener('resize', measure)
    return () => {
      clearTimeout(timer)
      removeEventListener('scroll', scrolled)
      removeEventListener('resize', measure)
    }
  }, [body, count])
  const { first, fitting } = view
  return {
    from: Math.max(0, Math.min(first, count - fitting) - beyond),
    to: Math.min(count, first + fitting + beyond),
    isMoving,
  }
}
