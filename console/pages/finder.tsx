// The Ctrl-K dialog: finds pages, objects and actions. The actions are those of the menus and buttons of the pages.
import { type KeyboardEvent, useId, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { listImages } from '../../src/api/images/images.ts'
import { listNodes } from '../../src/api/nodes/nodes.ts'
import { listPools } from '../../src/api/vms/pools.ts'
import { listRunnerPools } from '../../src/api/vms/runner-pools.ts'
import { listVmConfigs } from '../../src/api/vms/vm-configs.ts'
import { listVms } from '../../src/api/vms/vms.ts'
import { useLive } from '../api/live.ts'
import { useNamespaces } from '../api/namespaces.ts'
import { type NavLink, sectionsFor } from '../nav.ts'
import { Dialog } from '../ui/dialog.tsx'
import { type MenuItem, runItem } from '../ui/menu.tsx'
import { credentialCreation } from './access/add-credentials.tsx'
import { namespaceCreation } from './access/namespaces.tsx'
import { accessCreation } from './access/role-bindings.tsx'
import { accountCreation } from './access/service-accounts.tsx'
import { useActionContext } from './action-context.ts'
import { type FinderEntry, findAll } from './find.ts'
import { imageItems } from './images/actions.tsx'
import { imageCreations } from './images/creations.ts'
import { imageKinds } from './images/kind.ts'
import { nodeItems } from './nodes/actions.tsx'
import { imagePath, listPath, type Named, nodePath, poolPath, runnerPoolPath, vmPath } from './paths.ts'
import { poolCreation, poolItems } from './pools/actions.tsx'
import { runnerPoolItems } from './runner-pools/actions.tsx'
import { vmItems } from './vms/actions.tsx'
import { configCreation, configItems } from './vms/configs.tsx'

type Entry = FinderEntry<MenuItem>

export function Finder({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const [here, go] = useLocation()
  const id = useId()
  const entries = useEntries(here)
  const found = useMemo(() => findAll(entries, typed, here), [entries, typed, here])
  const choose = (entry: Entry | undefined): void => {
    if (!entry || entry.item?.reason !== undefined) return
    onClose()
    if (entry.path !== undefined) go(entry.path)
    if (entry.item) runItem(entry.item)
  }
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter') choose(found[at])
    else if (step !== undefined && found.length > 0) setAt((at + step + found.length) % found.length)
    else return
    event.preventDefault()
  }
  return (
    <Dialog title="Search" onClose={onClose}>
      <input
        className="input"
        role="combobox"
        aria-label="Search"
        aria-expanded={found.length > 0}
        aria-controls={id}
        aria-activedescendant={found[at] && `${id}${at}`}
        aria-autocomplete="list"
        autoComplete="off"
        spellCheck={false}
        placeholder="VM, image, node or page, or an action: stop web"
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <div id={id} role="listbox" className="found" aria-label="Results">
        {found.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field keeps the focus and handles the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          <div
            key={entry.key}
            id={`${id}${index}`}
            role="option"
            aria-selected={index === at}
            aria-disabled={entry.item?.reason !== undefined || undefined}
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
          No matches
        </p>
      )}
    </Dialog>
  )
}

/** Entries for objects of one kind, with their actions. */
const entriesOf = <T extends Named>(
  kind: string,
  items: readonly T[],
  path: (item: T) => string,
  actions: (item: T) => readonly MenuItem[],
): Entry[] =>
  items.map((item) => ({
    key: `${kind} ${item.namespace}/${item.name}`,
    kind,
    name: item.name,
    detail: item.namespace,
    path: path(item),
    actions: () => actions(item),
  }))

function useEntries(here: string): readonly Entry[] {
  const { shown, main } = useNamespaces()
  const context = useActionContext()
  const { items: vms } = useLive(listVms, shown)
  const { items: nodes } = useLive(listNodes, shown)
  const { items: pools } = useLive(listPools, shown)
  const { items: runnerPools } = useLive(listRunnerPools, shown)
  const { items: configs } = useLive(listVmConfigs, shown)
  const { items: images } = useLive(listImages, [main])
  return useMemo(() => {
    const isAdmin = context.person?.admin === true
    /** Deleting the object whose page is open leads to the list. */
    const from = (path: string, list: string) => ({
      ...context,
      onDeleted: () => {
        if (here === path) context.go(list)
      },
    })
    const linksTo = (kind: string, all: readonly NavLink[]): Entry[] =>
      all.map(([path, name]) => ({ key: path, kind, name, path }))
    return [
      ...linksTo('Action', [['/vms?deploy', 'Deploy VM'], ...(isAdmin ? [['/nodes?join', 'Add node'] as const] : [])]),
      ...linksTo(
        'Page',
        sectionsFor(isAdmin).flatMap((section) => section.links),
      ),
      ...creations(main, isAdmin),
      ...entriesOf('VM', vms, vmPath, (vm) => vmItems(vm, from(vmPath(vm), '/vms'))),
      ...entriesOf('Node', nodes, nodePath, (node) => nodeItems(node, from(nodePath(node), '/nodes'))),
      ...entriesOf('Pool', pools, poolPath, (pool) => poolItems(pool, from(poolPath(pool), '/pools'))),
      ...entriesOf('Runner pool', runnerPools, runnerPoolPath, (pool) =>
        runnerPoolItems(pool, from(runnerPoolPath(pool), '/runner-pools')),
      ),
      ...entriesOf(
        'Configuration',
        configs,
        ({ name }) => listPath('/configurations', { search: name }),
        (config) => configItems(config, context),
      ),
      ...images.map((image): Entry => {
        const path = imagePath('image', image.name)
        return {
          key: `image ${image.name}`,
          kind: 'Image',
          name: image.name,
          detail: image.description,
          path,
          actions: () => imageItems(imageKinds.image, image, from(path, '/images')),
        }
      }),
    ]
  }, [vms, nodes, pools, runnerPools, configs, images, context, main, here])
}

/** The create buttons of the list pages. */
function creations(namespace: string, isAdmin: boolean): readonly Entry[] {
  const of = (page: string, items: readonly MenuItem[]): Entry[] =>
    items.map((item) => ({
      key: `${page} ${item.label}`,
      kind: 'Action',
      name: item.label,
      detail: page,
      item,
    }))
  return [
    ...of('Images', imageCreations(imageKinds.image, namespace)),
    ...of('ISOs', imageCreations(imageKinds.iso, namespace)),
    ...of('Configurations', [configCreation(namespace)]),
    ...of('Pools', [poolCreation(namespace)]),
    ...(isAdmin
      ? [
          ...of('Registry credentials', [credentialCreation(namespace)]),
          ...of('Namespaces', [namespaceCreation]),
          ...of('Access', [accessCreation(namespace)]),
          ...of('Service accounts', [accountCreation(namespace)]),
        ]
      : []),
  ]
}
