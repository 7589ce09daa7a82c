// Renders a record in full, with one line per value.
import { type Cell, cellText, type Rendering } from './output.ts'

export interface Field<T> {
  readonly label: string
  /** Undefined and an empty list omit the field. */
  value(item: T): Cell | readonly string[]
}

export function recordText<T>(item: T, fields: readonly Field<T>[], { isTerminal, now }: Rendering): string {
  const shown = fields.flatMap(({ label, value }) => {
    const found = value(item)
    const texts = Array.isArray(found)
      ? found.map((text) => cellText(text, undefined))
      : found === undefined || found === ''
        ? []
        : [cellText(found as Cell, isTerminal ? now : undefined)]
    return texts.length === 0 ? [] : [{ label: `${label}:`, texts }]
  })
  const width = Math.max(0, ...shown.map(({ label }) => label.length)) + 2
  const lines = shown.flatMap(({ label, texts }) =>
    texts.map((text, index) => `${(index === 0 ? label : '').padEnd(width)}${text}`),
  )
  return `${lines.join('\n')}\n`
}
