// Headers of legacy answers: deprecated since (RFC 9745), sunset (RFC 8594), and links to the requests that replace the call.
import type { FastifyReply } from 'fastify'
import { fillPath } from '../../legacy/advice.ts'
import type { LegacyRow } from '../../legacy/row.ts'

/** The release of 3.0. */
const deprecatedSince = `@${Date.UTC(2026, 10, 15) / 1_000}`
const maxParamLength = 256

export function markDeprecated(reply: FastifyReply, sunset: string): void {
  reply.header('deprecation', deprecatedSince)
  reply.header('sunset', new Date(`${sunset}T00:00:00Z`).toUTCString())
}

/** Links to the replacements of a row, with the parameters that are known; without replacements, to the page. */
export function linkText(row: LegacyRow | undefined, params: Readonly<Record<string, unknown>>, page: string): string {
  // RFC 9745, section 3: the page explains the deprecation.
  if (!row || row.operations.length === 0) return `<${page}>; rel="successor-version", <${page}>; rel="deprecation"`
  const texts = Object.entries(params).filter(
    (each): each is [string, string] =>
      typeof each[1] === 'string' && each[1] !== '' && each[1].length <= maxParamLength,
  )
  return row.operations
    .map(({ path }) => fillPath(path, Object.fromEntries(texts)))
    .map((path) => `<${path.replaceAll('{', '%7B').replaceAll('}', '%7D')}>; rel="successor-version"`)
    .join(', ')
}
