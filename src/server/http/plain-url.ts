// Normalizes slashes in paths: some clients append one, and a base address that ends in one leads to two at the front.
import { allOperations } from '../../api/index.ts'
import { isLegacyPath } from '../../legacy/paths.ts'

/** First segments of the API's paths, such as `healthz`. */
const roots: ReadonlySet<string> = new Set(allOperations.map(({ path }) => path.split('/', 2)[1] ?? ''))

/** HTTP libraries shorten `…/vms/..` to this. The request meant a VM, and must not reach the namespace. */
const openNamespace = /^\/api\/v1\/namespaces\/[^/]+$/

/** Removes slashes at both ends of an API path. Other paths, and slashes within a path, stay as they are. */
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
