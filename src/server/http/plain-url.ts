// Normalizes slashes in paths: clients append one, and base addresses that end in one lead to two at the front.
import { allOperations } from '../../api/index.ts'
import { isLegacyPath } from '../../legacy/paths.ts'

/** First parts of paths outside of /api, such as `healthz`. */
const roots: ReadonlySet<string> = new Set(allOperations.map(({ path }) => path.split('/', 2)[1] ?? ''))

/** `…/vms/..` reaches us as this: HTTP libraries shorten it. Whoever meant a VM must not meet the namespace. */
const openNamespace = /^\/api\/v1\/namespaces\/[^/]+$/

/** Without slashes before and behind, where it is a path of an API; all others, and everything within, stay as they are. */
export function plainUrl(url: string): string {
  if (url[0] !== '/') return url
  const query = url.indexOf('?')
  const pathEnd = query === -1 ? url.length : query
  if (url[1] !== '/' && url[pathEnd - 1] !== '/') return url
  let start = 0
  while (url[start + 1] === '/') start++
  let end = pathEnd
  while (end > start + 1 && url[end - 1] === '/') end--
  const path = url.slice(start, end)
  if (end < pathEnd && openNamespace.test(path)) return url
  return roots.has(path.split('/', 2)[1] ?? '') || isLegacyPath(path) ? path + url.slice(pathEnd) : url
}
