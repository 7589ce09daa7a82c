// Keyboard shortcuts: Ctrl-K, single letters, and `g` followed by a letter. Letters are ignored while an input has
// focus.
import { lazy, Suspense, useLayoutEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { Button } from './ui/button.tsx'
import { Dialog, openDialog } from './ui/dialog.tsx'

const shortcuts = [
  ['Ctrl K', 'Search everything'],
  ['/', 'Search this page'],
  ['n', 'Deploy VM'],
  ['g then o', 'Overview'],
  ['g then v', 'VMs'],
  ['g then i', 'Images'],
  ['g then n', 'Nodes'],
  ['g then p', 'Push jobs'],
  ['g then e', 'Events'],
  ['?', 'Show this list'],
  ['Esc', 'Close the dialog or menu'],
] as const

const places: Readonly<Record<string, string>> = {
  o: '/',
  v: '/vms',
  i: '/images',
  n: '/nodes',
  p: '/pushes',
  e: '/events',
}
const timeoutMs = 1_200

const Finder = lazy(async () => ({ default: (await import('./pages/finder.tsx')).Finder }))

export const openFinder = (): void =>
  openDialog((onClose) => (
    <Suspense>
      <Finder onClose={onClose} />
    </Suspense>
  ))

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest('input, textarea, dialog, canvas, [role=combobox], [role=menu], .keys-taken') !== null

export function Shortcuts() {
  const [, go] = useLocation()
  const [isOpen, setOpen] = useState(false)
  // A layout effect, so that keys work as soon as the page is visible.
  useLayoutEffect(() => {
    let goUntilMs = 0
    const press = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
        event.preventDefault()
        // An open dialog may hold unsaved input.
        if (!document.querySelector('dialog:modal')) openFinder()
        return
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      const { key } = event
      if (performance.now() < goUntilMs && places[key] !== undefined) go(places[key])
      else if (key === '/') document.querySelector<HTMLInputElement>('input[type=search]')?.focus()
      else if (key === 'n') go('/vms?deploy')
      else if (key === '?') setOpen(true)
      else if (key === 'g') {
        goUntilMs = performance.now() + timeoutMs
        return
      } else return
      goUntilMs = 0
      event.preventDefault()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [go])
  if (!isOpen) return null
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => setOpen(false)}>
      <dl className="facts">
        {shortcuts.map(([keys, does]) => (
          <div key={keys} style={{ display: 'contents' }}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <div className="dialog-foot">
        <Button onClick={() => setOpen(false)}>Close</Button>
      </div>
    </Dialog>
  )
}
