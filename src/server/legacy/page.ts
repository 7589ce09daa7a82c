// Serves the page about all calls of 2.4.x, which legacy answers link to.
import { base } from '../../api/operation.ts'
import type { MappedCall } from '../../legacy/find.ts'
import { legacyHtml } from '../../legacy/html.ts'
import type { App } from '../gate/charges.ts'

const page = `${base}/legacy`
/** The address of the row on the page, or of the page. */
export const pageOf = ({ apiUrl }: { readonly apiUrl: () => string }, mapped: MappedCall | undefined): string =>
  `${apiUrl()}${page}${mapped ? `#${mapped.row.anchor}` : ''}`

/** Needs no token, and is served also when the gateway is disabled. */
export function serveLegacyPage(app: App): void {
  const text = legacyHtml()
  const headers = {
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  }
  app.route({
    method: 'GET',
    url: page,
    config: { charge: 'file' },
    handler: (_request, reply) => reply.headers(headers).type('text/html; charset=utf-8').send(text),
  })
}
