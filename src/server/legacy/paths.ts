// Which paths are those of 2.4.x, and one spelling for each: clients put a slash behind them, and base addresses that end
// in one put two before them.
import { legacyRows } from '../../legacy/map.ts'

const roots: ReadonlySet<string> = new Set(
  legacyRows.flatMap(({ calls }) => calls.map(({ path }) => path.split(/[/?]/)[1] ?? '')),
)

export const isLegacyPath = (url: string): boolean => roots.has(url.split(/[/?]/, 2)[1] ?? '')

/** Without slashes that mean nothing, where it is a path of 2.4.x; all others stay as they are. */
export function plainUrl(url: string): string {
  if (url[0] !== '/' || url.startsWith('/api/')) return url
  let start = 0
  while (url[start + 1] === '/') start++
  const query = url.indexOf('?')
  const pathEnd = query === -1 ? url.length : query
  let end = pathEnd
  while (end > start + 1 && url[end - 1] === '/') end--
  if (start === 0 && end === pathEnd) return url
  const path = url.slice(start, end)
  return isLegacyPath(path) ? path + url.slice(pathEnd) : url
}
