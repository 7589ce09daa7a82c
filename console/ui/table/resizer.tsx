// The edge of a column, beside the title and no part of it: drawn by pointer or moved by arrow keys, and back to what its content takes by two clicks or Delete.
import { type KeyboardEvent, type PointerEvent, useRef } from 'react'

interface Props {
  readonly label: string
  /** Where the column begins. */
  readonly leftPx: number
  readonly px: number
  /** Undefined: by its content again. */
  readonly onPx: (px: number | undefined) => void
}

const stepPx = 16
const steps: Readonly<Record<string, number>> = { ArrowLeft: -stepPx, ArrowRight: stepPx }

export function Resizer({ label, leftPx, px, onPx }: Props) {
  const begun = useRef<{ readonly x: number; readonly px: number }>(undefined)
  const press = (event: KeyboardEvent): void => {
    const step = steps[event.key]
    if (step !== undefined) onPx(px + step)
    else if (event.key === 'Delete') onPx(undefined)
    else return
    event.preventDefault()
  }
  const move = ({ clientX }: PointerEvent): void => {
    if (begun.current) onPx(begun.current.px + clientX - begun.current.x)
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule is no edge that can be moved
    <span
      className="resizer"
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={Math.round(px)}
      style={{ left: leftPx + px }}
      onKeyDown={press}
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
