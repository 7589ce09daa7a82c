// Tells paths of 2.4.x from other paths, by their first segment.
import { legacyRows } from './map.ts'

const roots: ReadonlySet<string> = new Set(
  legacyRows.flatMap(({ calls }) => calls.map(({ path }) => path.split(/[/?]/)[1] ?? '')),
)

export const isLegacyPath = (url: string): boolean => roots.has(url.split(/[/?]/, 2)[1] ?? '')
