// Prints requests and responses on stderr for --debug, redacted by redact.ts.
import type { Transport, TransportResponse } from '../../client/transport.ts'
import type { Host } from '../host.ts'
import { visible } from '../output/output.ts'
import { shownBody, shownHeader, shownUrl, withoutSecrets } from './redact.ts'

const answerHeaders = ['content-type', 'x-request-id', 'retry-after', 'etag', 'content-range'] as const
const maxShown = 4_000
let requests = 0

/** `secrets` may grow while the command runs. */
export function debugged(transport: Transport, host: Host, secrets: ReadonlySet<string>): Transport {
  return async (request) => {
    const number = ++requests
    const say = (sign: '>' | '<', text: string): void => {
      const line = withoutSecrets(visible(text), secrets)
      const rest = line.length > maxShown ? `${line.slice(0, maxShown)}… (${line.length} characters)` : line
      host.stderr.write(`${host.calledAs}: ${number} ${sign} ${rest}\n`)
    }
    const startMs = performance.now()
    const tookMs = (): number => Math.round(performance.now() - startMs)
    say('>', `${request.method} ${shownUrl(request.url)}`)
    for (const [name, value] of Object.entries(request.headers)) say('>', `  ${name}: ${shownHeader(name, value)}`)
    if (request.body !== undefined) say('>', `  ${shownBody(request.body)}`)
    if (request.upload) say('>', `  ${request.upload.bytes} bytes of a file`)
    try {
      const response = await transport(request)
      say('<', `${response.status} after ${tookMs()} ms`)
      for (const name of answerHeaders) {
        const value = response.header(name)
        if (value !== undefined) say('<', `  ${name}: ${value}`)
      }
      return withShownText(response, (text) => say('<', `  ${shownBody(text)}`))
    } catch (error) {
      say('<', `no answer after ${tookMs()} ms: ${error instanceof Error ? error.message : 'ended'}`)
      throw error
    }
  }
}

function withShownText(response: TransportResponse, show: (text: string) => void): TransportResponse {
  return {
    status: response.status,
    header: (name) => response.header(name),
    get body() {
      return response.body
    },
    async text(maxBytes) {
      const text = await response.text(maxBytes)
      show(text)
      return text
    },
  }
}
