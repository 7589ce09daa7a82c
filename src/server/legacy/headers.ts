// Deprecation headers of legacy answers: deprecated since (RFC 9745), sunset (RFC 8594), and the request that replaces
// it.
import type { FastifyReply } from 'fastify'
import { fillPath } from '../../legacy/advice.ts'
import type { LegacyRow } from '../../legacy/row.ts'

/** The day of 3.0. */
const deprecatedSince = `@${Date.UTC(2026, 10, 15) / 1_000}`

export function markDeprecated(
  reply: FastifyReply,
  row: LegacyRow | undefined,
  { sunset, namespace, page }: { readonly sunset: string; readonly namespace: string; readonly page: string },
): void {
  reply.header('deprecation', deprecatedSince)
  reply.header('sunset', new Date(`${sunset}T00:00:00Z`).toUTCString())
  const paths = row?.operations.map(({ path }) => fillPath(path, { namespace })) ?? []
  // Where no request takes its place, the page that says what to do does, with the reason (RFC 9745, section 3).
  const instead = `<${page}>; rel="successor-version", <${page}>; rel="deprecation"`
  reply.header('link', paths.length === 0 ? instead : paths.map(linkTo).join(', '))
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
  const whole = linkTo(fillPath(path, short(params)))
  reply.header(
    'link',
    announced.replace(linkTo(fillPath(path, { namespace })), () => whole),
  )
}

/** Of a request that was not made, as far as the client named what it was about. */
export function markNamed(reply: FastifyReply, named: Readonly<Record<string, unknown>>): void {
  const announced = reply.getHeader('link')
  if (typeof announced !== 'string' || !announced.includes('%7B')) return
  const texts = Object.entries(named).filter(
    (each): each is [string, string] => typeof each[1] === 'string' && each[1] !== '',
  )
  const braced = announced.replaceAll('%7B', '{').replaceAll('%7D', '}')
  reply.header(
    'link',
    fillPath(braced, short(Object.fromEntries(texts)))
      .replaceAll('{', '%7B')
      .replaceAll('}', '%7D'),
  )
}

/** Headers have an end: a name that nothing can have is left out. */
const short = (params: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(params).filter(([, value]) => value.length <= 256))
