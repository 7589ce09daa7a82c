// A live preview of the screen of a VM that links to the full one. Disconnects while the tab is hidden.
import '../../styles/screen.css'
import type RFB from '@novnc/novnc'
import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Link } from 'wouter'
import { type Named, vmPath } from '../paths.ts'
import { openScreen } from './open-screen.ts'

const onVisibility = (listener: () => void): (() => void) => {
  document.addEventListener('visibilitychange', listener)
  return () => document.removeEventListener('visibilitychange', listener)
}
const againMs = 10_000

export function Thumbnail({ namespace, name }: Named) {
  const isVisible = useSyncExternalStore(onVisibility, () => !document.hidden)
  const [attempt, setAttempt] = useState(1)
  /** Whether the VNC port has closed a connection without sending anything. */
  const [isSilent, setSilent] = useState(false)
  const container = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const target = container.current
    if (!target || !isVisible) return
    const unmounted = new AbortController()
    const { signal } = unmounted
    const onOpen = (client: RFB): void => {
      client.viewOnly = true
      client.scaleViewport = true
      client.qualityLevel = 2
      client.compressionLevel = 9
      let isOver = false
      const lost = (): void => {
        isOver = true
        const timer = window.setTimeout(() => setAttempt(attempt + 1), againMs)
        signal.addEventListener('abort', () => clearTimeout(timer))
      }
      client.addEventListener('disconnect', lost)
      signal.addEventListener('abort', () => {
        client.removeEventListener('disconnect', lost)
        if (!isOver) client.disconnect()
      })
    }
    openScreen(target, { namespace, name }, signal, onOpen).catch(() => signal.aborted || setSilent(true))
    return () => unmounted.abort()
  }, [namespace, name, attempt, isVisible])
  if (isSilent) return <p className="muted">The screen is not responding</p>
  return (
    <Link href={`${vmPath({ namespace, name })}/screen`} className="thumbnail" aria-label="Open the screen">
      <div ref={container} inert />
    </Link>
  )
}
