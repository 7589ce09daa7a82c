// What every answer to a legacy request tells a client that looks: deprecated since when (RFC 9745), until when it is
// answered (RFC 8594), and which request takes its place.
import type { FastifyReply } from 'fastify'
import { fillPath } from '../../legacy/advice.ts'
import type { LegacyRow } from '../../legacy/row.ts'

/** The day of 3.0. */
const deprecatedSince = `@${Date.UTC(2026, 10, 15) / 1_000}`
const documentation = '/api/v1/swagger'

export function markDeprecated(
  reply: FastifyReply,
  row: LegacyRow | undefined,
  { sunset, namespace }: { readonly sunset: string; readonly namespace: string },
): void {
  reply.header('deprecation', deprecatedSince)
  reply.header('sunset', new Date(`${sunset}T00:00:00Z`).toUTCString())
  const paths = row?.operations.map(({ path }) => fillPath(path, { namespace })) ?? []
  reply.header('link', paths.length === 0 ? linkTo(documentation) : paths.map(linkTo).join(', '))
}

/** Braces of parameters that are not known yet are no part of an address. */
const linkTo = (path: string): string =>
  `<${path.replaceAll('{', '%7B').replaceAll('}', '%7D')}>; rel="successor-version"`

/** Of a request that was made, the whole address is known. */
export function markMade(
  reply: FastifyReply,
  path: string,
  namespace: string,
  params: Readonly<Record<string, string>>,
): void {
  const announced = String(reply.getHeader('link') ?? '')
  reply.header('link', announced.replace(linkTo(fillPath(path, { namespace })), linkTo(fillPath(path, params))))
}
