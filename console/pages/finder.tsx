// Ctrl-K: finds pages, VMs, images, nodes, pools and actions by what is typed, and goes there.
import { type KeyboardEvent, useId, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { listImages } from '../../src/api/images/images.ts'
import { listNodes } from '../../src/api/nodes/nodes.ts'
import { listPools } from '../../src/api/vms/pools.ts'
import { listVms } from '../../src/api/vms/vms.ts'
import { useLive } from '../api/live.ts'
import { useNamespaces } from '../api/namespaces.ts'
import { useSession } from '../api/session.ts'
import { type Place, sectionsFor } from '../nav.ts'
import { texts } from '../texts.ts'
import { Dialog } from '../ui/dialog.tsx'
import { type Found, find } from './find.ts'
import { nodeTexts } from './nodes/texts.ts'
import { imagePath, type Named, nodePath, poolPath, vmPath } from './paths.ts'

const words = texts.finder

export function Finder({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const [, go] = useLocation()
  const id = useId()
  const entries = useEntries()
  const found = useMemo(() => find(entries, typed), [entries, typed])
  const choose = (entry: Found | undefined): void => {
    if (!entry) return
    onClose()
    go(entry.path)
  }
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter') choose(found[at])
    else if (step !== undefined && found.length > 0) setAt((at + step + found.length) % found.length)
    else return
    event.preventDefault()
  }
  return (
    <Dialog title={words.title} onClose={onClose}>
      <input
        className="input"
        role="combobox"
        aria-label={words.title}
        aria-expanded={found.length > 0}
        aria-controls={id}
        aria-activedescendant={found[at] && `${id}${at}`}
        aria-autocomplete="list"
        autoComplete="off"
        spellCheck={false}
        placeholder={words.hint}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <div id={id} role="listbox" className="found" aria-label={words.results}>
        {found.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are heard by the field, which keeps the focus
          // biome-ignore lint/a11y/useFocusableInteractive: the same
          <div
            key={entry.key}
            id={`${id}${index}`}
            role="option"
            aria-selected={index === at}
            onPointerMove={() => setAt(index)}
            onClick={() => choose(entry)}
          >
            <span className="muted small">{entry.kind}</span>
            <span className="strong">{entry.name}</span>
            <span className="muted small">{entry.detail}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && (
        <p className="muted" role="status">
          {texts.common.nothingFound}
        </p>
      )}
    </Dialog>
  )
}

function useEntries(): readonly Found[] {
  const { shown, main } = useNamespaces()
  const { person } = useSession()
  const { items: vms } = useLive(listVms, shown)
  const { items: nodes } = useLive(listNodes, shown)
  const { items: pools } = useLive(listPools, shown)
  const { items: images } = useLive(listImages, [main])
  const isAdmin = person?.admin === true
  return useMemo(() => {
    const of = <T extends Named>(kind: string, items: readonly T[], path: (item: T) => string): Found[] =>
      items.map((item) => ({
        key: `${kind} ${item.namespace}/${item.name}`,
        kind,
        name: item.name,
        detail: item.namespace,
        path: path(item),
      }))
    const actions: readonly Place[] = [
      ['/vms?deploy', texts.common.deployVm],
      ...(isAdmin ? [['/nodes?join', nodeTexts.join] as const] : []),
    ]
    const places = (kind: string, all: readonly Place[]): Found[] =>
      all.map(([path, name]) => ({ key: path, kind, name, path }))
    return [
      ...places(words.kinds.action, actions),
      ...places(
        words.kinds.page,
        sectionsFor(isAdmin).flatMap((section) => section.places),
      ),
      ...of(words.kinds.vm, vms, vmPath),
      ...of(words.kinds.node, nodes, nodePath),
      ...of(words.kinds.pool, pools, poolPath),
      ...images.map(({ name, description }) => ({
        key: `image ${name}`,
        kind: words.kinds.image,
        name,
        detail: description,
        path: imagePath('image', name),
      })),
    ]
  }, [vms, nodes, pools, images, isAdmin])
}
