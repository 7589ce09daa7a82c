// Positions a popover below its button or field, or above it if there is more room, and within the window. Popovers are
// in the browser's top layer, so neither a table nor a dialog clips them.

interface Anchored {
  /** Aligns with the left edge of the field and is at least as wide. Without it, aligns with the right edge. */
  readonly isField?: boolean
}

const gap = 4
const edge = 8

export function showAt(opened: HTMLElement, from: HTMLElement, { isField = false }: Anchored = {}): void {
  if (!opened.matches(':popover-open')) opened.showPopover()
  const place = from.getBoundingClientRect()
  if (isField) opened.style.minWidth = `${place.width}px`
  const [below, above] = [innerHeight - place.bottom - gap - edge, place.top - gap - edge]
  const isBelow = opened.scrollHeight <= below || below >= above
  opened.style.maxHeight = `${Math.max(120, Math.min(isBelow ? below : above, 0.6 * innerHeight))}px`
  const { offsetWidth: width, offsetHeight: height } = opened
  const left = isField ? place.left : place.right - width
  opened.style.left = `${Math.max(edge, Math.min(left, innerWidth - width - edge))}px`
  opened.style.top = `${isBelow ? place.bottom + gap : place.top - gap - height}px`
}
