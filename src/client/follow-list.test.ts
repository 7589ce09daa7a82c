// A followed list against servers that cut the watch and forget the past: nothing twice, no deletion lost.
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { listVms } from '../api/vms/vms.ts'
import { createClient } from './client.ts'
import { followList } from './follow-list.ts'
import { httpTransport } from './http.ts'

const retry = { attempts: 3, firstDelayMs: 1, maxDelayMs: 2, maxRetryAfterMs: 5 }
const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`
const added = (name: string, uid = name, status = 'Running') => line('ADDED', { name, uid, status })
const bookmark = (resourceVersion: string) => line('BOOKMARK', { resourceVersion })
const expired = { kind: 'Status', message: 'too old', reason: 'Expired', code: 410 }
type Script = (response: ServerResponse) => void
const cut =
  (...lines: string[]): Script =>
  (response) =>
    void response.write(lines.join(''), () => response.destroy())
const gone: Script = (response) => response.writeHead(410).end(JSON.stringify(expired))

/** One script per connection, then all events up to the one that is the last. */
async function followed(scripts: readonly Script[], last: string) {
  const asked: (string | null)[] = []
  const server = createServer((request, response) => {
    asked.push(new URL(request.url ?? '', 'http://x').searchParams.get('resourceVersion'))
    ;(scripts[asked.length - 1] ?? gone)(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = createClient({ baseUrl, transport: httpTransport() })
  const controller = new AbortController()
  const events: string[] = []
  try {
    const input = { params: { namespace: 'svc-default' } }
    for await (const event of followList(client, listVms, input, { signal: controller.signal, retry })) {
      events.push(event.type === 'BOOKMARK' ? event.type : `${event.type} ${event.object.name} ${event.object.status}`)
      if (events.at(-1) === last) controller.abort()
    }
  } finally {
    server.closeAllConnections()
    server.close()
  }
  return { events, asked }
}

describe('a followed list', () => {
  it('reports items that were deleted while it was disconnected, and nothing twice', async () => {
    const { events, asked } = await followed(
      [
        cut(added('a'), added('b'), bookmark('5')),
        gone,
        (response) => response.write(added('a') + bookmark('9') + added('last')),
      ],
      'ADDED last Running',
    )
    assert.deepEqual(asked, [null, '5', null])
    assert.deepEqual(events, [
      'ADDED a Running',
      'ADDED b Running',
      'BOOKMARK',
      'DELETED b Running',
      'BOOKMARK',
      'ADDED last Running',
    ])
  })

  it('reports deleted items when the connection is lost before the first bookmark', async () => {
    const { events, asked } = await followed(
      [cut(added('a'), added('b')), (response) => response.write(added('b') + bookmark('9'))],
      'BOOKMARK',
    )
    assert.deepEqual(asked, [null, null])
    assert.deepEqual(events, ['ADDED a Running', 'ADDED b Running', 'DELETED a Running', 'BOOKMARK'])
  })

  it('reports changes in between as MODIFIED, and a new item with the same name as another', async () => {
    const { events } = await followed(
      [
        cut(added('a'), added('b'), bookmark('5')),
        gone,
        (response) => response.write(added('a', 'a', 'Stopped') + added('b', 'b2') + bookmark('9') + added('last')),
      ],
      'ADDED last Running',
    )
    assert.deepEqual(events.slice(3, -1), ['MODIFIED a Stopped', 'DELETED b Running', 'ADDED b Running', 'BOOKMARK'])
  })

  it('ends with the error when the past is refused again and again', async () => {
    await assert.rejects(followed([cut(added('a'), bookmark('5'))], ''), { reason: 'Expired' })
  })
})
