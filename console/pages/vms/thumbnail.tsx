// The screen of a VM, small, to look at: it moves while the page is in sight, and leads to the whole one. Loaded late.
import '../../styles/screen.css'
import RFB from '@novnc/novnc'
import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Link } from 'wouter'
import { connectVm } from '../../../src/api/vms/vms.ts'
import { socketUrl } from '../../api/places.ts'
import { pathOf } from '../../teach/requests.ts'
import { type Named, vmPath } from '../paths.ts'
import { vmTexts as words } from './texts.ts'

const onVisibility = (listener: () => void): (() => void) => {
  document.addEventListener('visibilitychange', listener)
  return () => document.removeEventListener('visibilitychange', listener)
}
/** One that was lost is tried again, not at once. */
const againMs = 10_000

export function Thumbnail({ namespace, name }: Named) {
  const isVisible = useSyncExternalStore(onVisibility, () => !document.hidden)
  const [attempt, setAttempt] = useState(1)
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!place.current || !isVisible) return
    const path = pathOf(connectVm, { params: { namespace, vm: name }, query: { port: 'vnc' } })
    const made = new RFB(place.current, socketUrl(path), { wsProtocols: [], shared: true })
    made.viewOnly = true
    made.scaleViewport = true
    made.qualityLevel = 2
    made.compressionLevel = 9
    made.background = 'transparent'
    const leaving = new AbortController()
    let isOver = false
    let wasThere = false
    const lost = (): void => {
      isOver = true
      // One that never answered has no screen to show: a simulated VM, for example.
      if (!wasThere) return
      const timer = window.setTimeout(() => setAttempt(attempt + 1), againMs)
      leaving.signal.addEventListener('abort', () => clearTimeout(timer))
    }
    made.addEventListener('connect', () => {
      wasThere = true
    })
    made.addEventListener('disconnect', lost)
    return () => {
      made.removeEventListener('disconnect', lost)
      leaving.abort()
      if (!isOver) made.disconnect()
    }
  }, [namespace, name, attempt, isVisible])
  return (
    <Link href={`${vmPath({ namespace, name })}/screen`} className="thumbnail" aria-label={words.thumbnail}>
      <div ref={place} inert />
    </Link>
  )
}
