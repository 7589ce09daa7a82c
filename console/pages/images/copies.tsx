// Cached copies of one image on all nodes, or of all images on one node.
import { useState } from 'react'
import { Link } from 'wouter'
import { listNodeCaches, type NodeCache } from '../../../src/api/images/image-cache.ts'
import { longSize } from '../../../src/rules/sizes.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { Button } from '../../ui/button.tsx'
import { Loading } from '../../ui/page.tsx'
import { count } from '../../ui/sizes.ts'
import { State } from '../../ui/state.tsx'
import { imagePath, nodePath } from '../paths.ts'

type Copy = NodeCache['copies'][number]
interface CopyView {
  readonly name: string
  readonly path: string
  readonly copy: Copy
}

const tones = { Pending: 'busy', Fetching: 'busy', Ready: 'good', Failed: 'bad', Removing: 'busy' } as const

/** Copies that need attention come first, since there may be a thousand nodes. */
const order = { Failed: 0, Fetching: 1, Pending: 2, Removing: 3, Ready: 4 } as const
const shownNodes = 8

export function CopiesOfImage({ name }: { readonly name: string }) {
  const { shown: namespaces } = useNamespaces()
  const [isAll, setAll] = useState(false)
  const { items, isLoaded } = useLive(listNodeCaches, namespaces)
  const copies = items
    .flatMap((node) =>
      node.copies
        .filter(({ image }) => image === name)
        .map((copy): CopyView => ({ name: node.name, path: nodePath(node), copy })),
    )
    .toSorted((a, b) => order[a.copy.state] - order[b.copy.state])
  const left = isAll ? 0 : copies.length - shownNodes
  const ready = copies.filter(({ copy }) => copy.state === 'Ready').length
  return (
    <>
      {copies.length > 0 && (
        <p className="muted small">
          {ready === copies.length
            ? `Ready on ${count(copies.length, 'node', 'nodes')}`
            : `Ready on ${ready} of ${count(copies.length, 'node', 'nodes')}`}
        </p>
      )}
      <Copies
        isLoaded={isLoaded}
        shown={left > 0 ? copies.slice(0, shownNodes) : copies}
        empty="Not cached on any node. A node downloads the image when it starts the first VM."
      />
      {left > 0 && (
        <div>
          <Button size="small" onClick={() => setAll(true)}>
            {`Show ${count(left, 'more node', 'more nodes')}`}
          </Button>
        </div>
      )}
    </>
  )
}

export function CopiesOnNode({ namespace, name }: { readonly namespace: string; readonly name: string }) {
  const { items, isLoaded } = useLive(listNodeCaches, [namespace])
  const copies = items.find((node) => node.name === name)?.copies ?? []
  const shown = copies.map((copy): CopyView => ({ name: copy.image, path: imagePath('image', copy.image), copy }))
  return <Copies isLoaded={isLoaded} shown={shown} empty="No cached images" />
}

const stateText = ({ state, progress }: Copy): string => {
  const word = state === 'Fetching' ? 'Downloading' : state
  return progress ? `${word} ${progress.percent}%` : word
}

interface Props {
  readonly isLoaded: boolean
  readonly shown: readonly CopyView[]
  readonly empty: string
}

function Copies({ isLoaded, shown, empty }: Props) {
  if (!isLoaded) return <Loading />
  if (shown.length === 0) return <p className="muted">{empty}</p>
  return (
    <ul className="feed">
      {shown.map(({ name, path, copy }) => (
        <li key={name}>
          <span className="line">
            <Link href={path}>{name}</Link>
            <State tone={tones[copy.state]} word={stateText(copy)} />
            {copy.pinned && <span className="tag">Pinned</span>}
          </span>
          <span className="muted tabular">{copy.spaceUsed && longSize(copy.spaceUsed)}</span>
          {copy.errorMessage !== undefined && <span className="small muted">{copy.errorMessage}</span>}
        </li>
      ))}
    </ul>
  )
}
