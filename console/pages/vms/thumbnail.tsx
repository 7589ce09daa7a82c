// A live preview of the screen of a VM that links to the full one. Disconnects while the tab is hidden.
import '../../styles/screen.css'
import RFB from '@novnc/novnc'
import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Link } from 'wouter'
import { connectVm } from '../../../src/api/vms/vms.ts'
import { socketUrl } from '../../api/urls.ts'
import { pathOf } from '../../teach/requests.ts'
import { type Named, vmPath } from '../paths.ts'
import { answeringSocket } from './screen-socket.ts'

const onVisibility = (listener: () => void): (() => void) => {
  document.addEventListener('visibilitychange', listener)
  return () => document.removeEventListener('visibilitychange', listener)
}
const againMs = 10_000

export function Thumbnail({ namespace, name }: Named) {
  const isVisible = useSyncExternalStore(onVisibility, () => !document.hidden)
  const [attempt, setAttempt] = useState(1)
  /** The VNC port accepts connections but sends nothing. */
  const [isSilent, setSilent] = useState(false)
  const container = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const target = container.current
    if (!target || !isVisible) return
    const path = pathOf(connectVm, { params: { namespace, vm: name }, query: { port: 'vnc' } })
    const unmounted = new AbortController()
    const show = async (): Promise<void> => {
      const { socket, replay } = await answeringSocket(socketUrl(path), unmounted.signal)
      if (unmounted.signal.aborted) return
      const client = new RFB(target, socket, { shared: true })
      client.viewOnly = true
      client.scaleViewport = true
      client.qualityLevel = 2
      client.compressionLevel = 9
      client.background = 'transparent'
      let isOver = false
      const lost = (): void => {
        isOver = true
        const timer = window.setTimeout(() => setAttempt(attempt + 1), againMs)
        unmounted.signal.addEventListener('abort', () => clearTimeout(timer))
      }
      client.addEventListener('disconnect', lost)
      unmounted.signal.addEventListener('abort', () => {
        client.removeEventListener('disconnect', lost)
        if (!isOver) client.disconnect()
      })
      replay()
    }
    void show().catch(() => !unmounted.signal.aborted && setSilent(true))
    return () => unmounted.abort()
  }, [namespace, name, attempt, isVisible])
  if (isSilent) return <p className="muted">The screen is not responding</p>
  return (
    <Link href={`${vmPath({ namespace, name })}/screen`} className="thumbnail" aria-label="Open the screen">
      <div ref={container} inert />
    </Link>
  )
}
