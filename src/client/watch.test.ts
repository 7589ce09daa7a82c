// The watch against servers that cut, end and refuse it.
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { listRegistryCredentials } from '../api/access/registry-credentials.ts'
import { createClient } from './client.ts'
import { httpTransport } from './http.ts'
import { watch } from './watch.ts'

const retry = { attempts: 3, firstDelayMs: 1, maxDelayMs: 2, maxRetryAfterMs: 5 }
const input = { params: { namespace: 'svc-default' } }
const change = (type: string, version: string) => `${JSON.stringify({ type, object: { resourceVersion: version } })}\n`

/** One script per connection; the last serves all that follow. Collects until `stopAt` events have come. */
async function watched(scripts: ((response: ServerResponse) => void)[], stopAt: number, resourceVersion?: string) {
  const asked: (string | null)[] = []
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams
    assert.equal(query.get('watch'), 'true')
    asked.push(query.get('resourceVersion'))
    scripts[Math.min(asked.length, scripts.length) - 1]?.(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = createClient({ baseUrl, transport: httpTransport() })
  const controller = new AbortController()
  const events: string[] = []
  let failure: unknown
  try {
    const options = { signal: controller.signal, retry, ...(resourceVersion !== undefined && { resourceVersion }) }
    for await (const { type, object } of watch(client, listRegistryCredentials, input, options)) {
      events.push(`${type} ${object.resourceVersion}`)
      if (events.length === stopAt) controller.abort()
    }
  } catch (error) {
    failure = error
  } finally {
    server.closeAllConnections()
    server.close()
  }
  return { events, asked, failure: failure as { reason?: string; fault?: string } | undefined }
}

/** Cuts the connection once the bytes have left. */
const cut = (response: ServerResponse, text: string): void => void response.write(text, () => response.destroy())

describe('watch', () => {
  it('a watch resumes from the last version after a lost connection, also in the middle of a line', async () => {
    const { events, asked } = await watched(
      [
        (response) => cut(response, change('ADDED', '8') + change('MODIFIED', '9').slice(0, 20)),
        (response) => response.end(change('MODIFIED', '9')),
        (response) => response.write(change('BOOKMARK', '12')),
      ],
      3,
      '7',
    )
    assert.deepEqual(events, ['ADDED 8', 'MODIFIED 9', 'BOOKMARK 12'])
    assert.deepEqual(asked, ['7', '8', '9'])
  })

  it('a watch begins again when it is cut before the first bookmark', async () => {
    const { asked, events } = await watched(
      [
        (response) => cut(response, change('ADDED', '30')),
        (response) => cut(response, change('ADDED', '30') + change('ADDED', '5') + change('BOOKMARK', '31')),
        (response) => response.write(change('DELETED', '32')),
      ],
      5,
    )
    assert.deepEqual(asked, [null, null, '31'])
    assert.equal(events.at(-1), 'DELETED 32')
  })

  it('a watch ends when it is aborted', async () => {
    const { events, failure } = await watched([(response) => response.write(change('ADDED', '1'))], 1)
    assert.deepEqual([events, failure], [['ADDED 1'], undefined])
  })

  it('a watch throws Expired, before the stream and inside it', async () => {
    const expired = { kind: 'Status', message: 'too old', reason: 'Expired', code: 410 }
    const before = await watched([(response) => response.writeHead(410).end(JSON.stringify(expired))], 1, '1')
    assert.equal(before.failure?.reason, 'Expired')
    const inside = await watched(
      [(response) => response.end(`${JSON.stringify({ type: 'ERROR', object: expired })}\n`)],
      1,
    )
    assert.equal(inside.failure?.reason, 'Expired')
  })

  it('a watch gives up when nothing comes, and at once when it is not a watch', async () => {
    const empty = await watched([(response) => response.end()], 1)
    assert.deepEqual([empty.failure?.fault, empty.asked.length], ['lost', 3])
    const page = await watched([(response) => response.end('<html>\n')], 1)
    assert.deepEqual([page.failure?.fault, page.asked.length], ['unusable', 1])
  })
})
