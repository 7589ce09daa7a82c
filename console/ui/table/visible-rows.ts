// Which rows of a long table are in the window, or near it: computed again as it is scrolled, at most once a frame.
import { type RefObject, useEffect, useState } from 'react'
import { flushSync } from 'react-dom'

/** Rows that are drawn beyond each edge: as far as a wheel turns in a few frames. */
const beyond = 12
/** Drawn and dropped by so many at once. */
const step = 4

/** So long after the last movement it rests. */
const restMs = 150

interface Range {
  readonly from: number
  readonly to: number
  readonly isMoving: boolean
}

/** Rows of a table body that is as high as all its rows together, each of one height. */
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
    // In the frame that was scrolled for, not in the one after it.
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
