// Legacy calls in a Postman collection: its requests, wherever in its folders they are.

import { findCall } from './find.ts'
import type { Finding, ScanOptions } from './finding.ts'
import { credible, hitsIn } from './scan-source.ts'

interface Item {
  readonly item?: readonly Item[]
  readonly request?: string | { readonly method?: string; readonly url?: string | { readonly raw?: string } }
}

export function postmanFindings(text: string, options: ScanOptions): Finding[] {
  let collection: Item & { readonly variable?: readonly { readonly key?: string; readonly value?: unknown }[] }
  try {
    collection = JSON.parse(text)
  } catch {
    return []
  }
  const values = new Map((collection.variable ?? []).map(({ key = '', value }) => [key, String(value ?? '')]))
  let from = 0
  const findings = requestsIn(collection).flatMap(({ method, url }) => {
    const encoded = JSON.stringify(url)
    const found = text.indexOf(encoded, from)
    const index = found === -1 ? text.indexOf(encoded) : found
    if (found !== -1) from = found + encoded.length
    const lineNumber = text.slice(0, Math.max(0, index)).split('\n').length
    const [hit] = hitsIn(`"${url}"`, lineNumber, 'postman')
    const call = hit && findCall(method, hit.path)
    return hit && call ? [{ ...call, line: hit.line, column: 1, text: `${method} ${url}`, base: hit.base }] : []
  })
  return credible(findings, values, options)
}

function requestsIn({ item = [], request }: Item): { method: string; url: string }[] {
  const nested = item.flatMap(requestsIn)
  if (request === undefined) return nested
  const { method = 'GET', url = '' } = typeof request === 'string' ? { url: request } : request
  return [{ method: method.toUpperCase(), url: typeof url === 'string' ? url : (url.raw ?? '') }, ...nested]
}
