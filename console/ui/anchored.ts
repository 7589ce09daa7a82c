// Where something stands that was opened from a button or a field: below it, above it where there is no room, always in the
// window. In the browser's top layer, so that neither a table nor a dialog cuts it off.

interface Anchored {
  /** At least as wide as what it was opened from, and flush with its left side; otherwise with its right side. */
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
