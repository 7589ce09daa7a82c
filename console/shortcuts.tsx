// Keyboard shortcuts: Ctrl-K, single letters, and `g` followed by a letter. Letters are ignored while an input has
// focus.
import { lazy, Suspense, useLayoutEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { Button } from './ui/button.tsx'
import { Dialog, openDialog } from './ui/dialog.tsx'

/** Pages by the letter after `g`. */
const places: Readonly<Record<string, readonly [path: string, title: string]>> = {
  o: ['/', 'Overview'],
  v: ['/vms', 'VMs'],
  i: ['/images', 'Images'],
  n: ['/nodes', 'Nodes'],
  p: ['/pushes', 'Push jobs'],
  e: ['/events', 'Events'],
}
const shortcuts = [
  ['Ctrl K', 'Search everything'],
  ['/', 'Search this page'],
  ['n', 'Deploy VM'],
  ...Object.entries(places).map(([letter, [, title]]) => [`g then ${letter}`, title] as const),
  ['?', 'Show this list'],
  ['Esc', 'Close the dialog or menu'],
] as const

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
      if (performance.now() < goUntilMs && places[key]) go(places[key][0])
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
