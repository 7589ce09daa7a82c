// Handles between columns: dragged by pointer or moved by arrow keys; double click or Delete resets the width. The
// handles of a table are one tab stop; up and down move between them.
import { type KeyboardEvent, type PointerEvent, useRef, useState } from 'react'

interface Edge {
  readonly title: string
  readonly leftPx: number
  readonly px: number
}

interface Props {
  readonly edges: readonly Edge[]
  readonly isNarrow: boolean
  /** Undefined resets the width. */
  readonly onPx: (title: string, px: number | undefined) => void
}

const stepPx = 16
const widths: Readonly<Record<string, number>> = { ArrowLeft: -stepPx, ArrowRight: stepPx }
const ways: Readonly<Record<string, number>> = { ArrowUp: -1, ArrowDown: 1 }

export function Resizers({ edges, isNarrow, onPx }: Props) {
  const box = useRef<HTMLDivElement>(null)
  /** The handle that last had the focus is the tab stop. */
  const [last, setLast] = useState('')
  const stop = edges.some(({ title }) => title === last) ? last : edges[0]?.title
  const press = (event: KeyboardEvent, { title, px }: Edge): void => {
    const step = widths[event.key]
    const way = ways[event.key]
    if (step !== undefined) onPx(title, px + step)
    else if (event.key === 'Delete') onPx(title, undefined)
    else if (way !== undefined) {
      const all = [...(box.current?.querySelectorAll<HTMLElement>('.resizer') ?? [])]
      all[all.indexOf(event.currentTarget as HTMLElement) + way]?.focus()
    } else return
    event.preventDefault()
  }
  return (
    <div ref={box} className="resizers" data-narrow={isNarrow}>
      {edges.map((edge) => (
        <Resizer
          key={edge.title}
          edge={edge}
          isStop={edge.title === stop}
          onPx={(px) => onPx(edge.title, px)}
          onKeyDown={(event) => press(event, edge)}
          onFocus={() => setLast(edge.title)}
        />
      ))}
    </div>
  )
}

interface ResizerProps {
  readonly edge: Edge
  readonly isStop: boolean
  readonly onPx: (px: number | undefined) => void
  readonly onKeyDown: (event: KeyboardEvent) => void
  readonly onFocus: () => void
}

function Resizer({ edge: { title, leftPx, px }, isStop, onPx, ...handlers }: ResizerProps) {
  const begun = useRef<{ readonly x: number; readonly px: number }>(undefined)
  const move = ({ clientX }: PointerEvent): void => {
    if (begun.current) onPx(begun.current.px + clientX - begun.current.x)
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: an hr cannot be focused and moved
    <span
      className="resizer"
      role="separator"
      tabIndex={isStop ? 0 : -1}
      aria-orientation="vertical"
      aria-label={`Width of ${title}`}
      aria-description="Left and right resize the column, Delete resets it, up and down move to other columns"
      aria-valuenow={Math.round(px)}
      style={{ left: leftPx + px }}
      {...handlers}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId)
        begun.current = { x: event.clientX, px }
      }}
      onPointerMove={move}
      onLostPointerCapture={() => {
        begun.current = undefined
      }}
      onDoubleClick={() => onPx(undefined)}
    />
  )
}
