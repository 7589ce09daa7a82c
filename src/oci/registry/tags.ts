// Lists the tags of a repository.

import type { HttpResponse } from '../../platform/http.ts'
import { retry } from '../../platform/retry.ts'
import { RegistryError } from '../artifact/errors.ts'
import type { RegistryExchange } from './exchange.ts'
import { redactUrl } from './redact.ts'
import { readBounded, registryLocation } from './send.ts'

interface TagsOptions {
  readonly exchange: RegistryExchange
  readonly repository: string
  readonly signal?: AbortSignal | undefined
}

/** Further tags are ignored. The page size is the registry's choice. */
export const maxTags = 10_000
const maxPages = 200
const wantedOnPage = 1_000
const maxPageBytes = 2 ** 21
const tagForm = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/

export async function listTags({ exchange, repository, signal }: TagsOptions): Promise<readonly string[]> {
  const name = `${exchange.origin.host}/${repository}`
  const tags = new Set<string>()
  const seen = new Set<string>()
  let next: URL | undefined = new URL(`/v2/${repository}/tags/list?n=${wantedOnPage}`, exchange.origin)
  while (next && tags.size < maxTags) {
    const url: URL = next
    if (seen.has(url.href)) throw new RegistryError('invalid', `${name} lists its tags in a loop`)
    if (seen.size === maxPages)
      throw new RegistryError('invalid', `${name} lists its tags on more than ${maxPages} pages`)
    seen.add(url.href)
    const page = await retry(async () => {
      const answer = await exchange.ask({ method: 'GET', url, signal }, [`repository:${repository}:pull`])
      if (answer.status !== 200) throw await exchange.refuse(answer, `Reading ${name}`)
      return { tags: tagsIn(await readBounded(answer, maxPageBytes), name), next: nextOf(answer, url) }
    }, exchange.retryOptions(signal))
    for (const tag of page.tags) tags.add(tag)
    next = page.next
  }
  return [...tags].slice(0, maxTags)
}

function tagsIn(bytes: Buffer, name: string): readonly string[] {
  try {
    const { tags } = JSON.parse(bytes.toString('utf8')) as { tags?: unknown }
    if (tags === null) return []
    if (Array.isArray(tags) && tags.every((tag) => typeof tag === 'string' && tagForm.test(tag))) return tags
  } catch {
    // Reported below.
  }
  throw new RegistryError('invalid', `${name} sent no list of tags`)
}

/** Reads `<url>; rel="next"`. The URL must be of the same list, because the request will have credentials. */
export function nextOf({ headers }: HttpResponse, from: URL): URL | undefined {
  const { link = '' } = headers
  const [, where] = /<([^<>]*)>\s*;(?:[^,<>]*;)?\s*rel="?next"?(?=\s*(?:[;,]|$))/i.exec([link].flat().join(', ')) ?? []
  if (where === undefined) return undefined
  const next = registryLocation(where, from)
  if (next.origin === from.origin && next.pathname === from.pathname) return next
  throw new RegistryError('invalid', `${redactUrl(from)} redirects to another address for its tags`)
}
