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
    const again = (): void => {
      const timer = window.setTimeout(() => setAttempt(attempt + 1), againMs)
      signal.addEventListener('abort', () => clearTimeout(timer))
    }
    const onOpen = (client: RFB): void => {
      client.viewOnly = true
      client.scaleViewport = true
      client.qualityLevel = 2
      client.compressionLevel = 9
      setSilent(false)
      let isOver = false
      const lost = (): void => {
        isOver = true
        again()
      }
      client.addEventListener('disconnect', lost)
      signal.addEventListener('abort', () => {
        client.removeEventListener('disconnect', lost)
        if (!isOver) client.disconnect()
      })
    }
    const failed = (): void => {
      if (signal.aborted) return
      setSilent(true)
      again()
    }
    openScreen(target, { namespace, name }, signal, onOpen).catch(failed)
    return () => unmounted.abort()
  }, [namespace, name, attempt, isVisible])
  return (
    <>
      {isSilent && <p className="muted">The screen is not responding</p>}
      <Link
        href={`${vmPath({ namespace, name })}/screen`}
        className="thumbnail"
        aria-label="Open the screen"
        hidden={isSilent}
      >
        <div ref={container} inert />
      </Link>
    </>
  )
}
