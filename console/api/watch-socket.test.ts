// The WebSocket for all watches, with the client's watch on top, against a scripted server.
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { type WebSocket as Peer, WebSocketServer } from 'ws'
import { listRegistryCredentials } from '../../src/api/access/registry-credentials.ts'
import { createClient } from '../../src/client/client.ts'
import { watch } from '../../src/client/watch.ts'
import { watchingTransport } from './watch-socket.ts'

interface Asked {
  readonly watch?: number
  readonly unwatch?: number
  readonly path?: string
  readonly query?: Readonly<Record<string, string>>
}

const retry = { attempts: 3, firstDelayMs: 1, maxDelayMs: 2, maxRetryAfterMs: 5 }
const event = (id: number | undefined, type: string, version: string) => ({
  watch: id,
  type,
  object: { resourceVersion: version },
})

/** A service that handles each watch request with `reply`. */
async function startPeer(reply: (asked: Asked, socket: Peer, say: (message: unknown) => void) => void) {
  const asked: Asked[] = []
  let connections = 0
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/below/api/v1/watch' })
  server.on('connection', (socket) => {
    connections++
    socket.on('message', (data) => {
      const message = JSON.parse(String(data)) as Asked
      asked.push(message)
      reply(message, socket, (each) => socket.send(JSON.stringify(each)))
    })
  })
  await new Promise((resolve) => server.once('listening', resolve))
  const serviceUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/below`
  const states: string[] = []
  const options = { serviceUrl, onOpen: () => void states.push('open'), onClose: () => void states.push('closed') }
  const transport = watchingTransport(options, () => Promise.reject(new Error('not a watch')))
  const client = createClient({ baseUrl: serviceUrl, transport })
  return {
    asked,
    states,
    connections: () => connections,
    /** The first events of a list, or the error. */
    watched: async (namespace: string, stopAt: number, resourceVersion?: string) => {
      const controller = new AbortController()
      const events: string[] = []
      const from = { signal: controller.signal, retry, ...(resourceVersion !== undefined && { resourceVersion }) }
      for await (const { type, object } of watch(client, listRegistryCredentials, { params: { namespace } }, from)) {
        events.push(`${type} ${object.resourceVersion}`)
        if (events.length === stopAt) controller.abort()
      }
      return events
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of server.clients) socket.terminate()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describe('watches over one WebSocket', () => {
  it('watches of several lists share one WebSocket, and each receives only its events', async () => {
    await using peer = await startPeer(({ watch: id, path }, _, say) => {
      if (id !== undefined) say([event(id, 'ADDED', path?.includes('svc-a') ? '1' : '2'), event(id, 'BOOKMARK', '9')])
    })
    const both = await Promise.all([peer.watched('svc-a', 2), peer.watched('svc-b', 2)])
    assert.deepEqual(both, [
      ['ADDED 1', 'BOOKMARK 9'],
      ['ADDED 2', 'BOOKMARK 9'],
    ])
    assert.equal(peer.connections(), 1)
  })

  it('a watch is requested with its path and query, and cancelled when it is aborted', async () => {
    const givenUp = Promise.withResolvers<void>()
    await using peer = await startPeer(({ watch: id, unwatch }, _, say) => {
      if (unwatch !== undefined) givenUp.resolve()
      else say(event(id, 'ADDED', '43'))
    })
    await peer.watched('svc-a', 1, '42')
    await givenUp.promise
    assert.deepEqual(peer.asked, [
      {
        watch: 1,
        path: '/api/v1/namespaces/svc-a/secrets/registrycredentials',
        query: { resourceVersion: '42' },
      },
      { unwatch: 1 },
    ])
  })

  it('a watch whose WebSocket is closed resumes on a new one from the last version', async () => {
    await using peer = await startPeer(({ watch: id, query }, socket, say) => {
      if (id === undefined) return
      if (query?.resourceVersion === '7') {
        say([event(id, 'ADDED', '8'), event(id, 'BOOKMARK', '9')])
        socket.close()
      } else say(event(id, 'MODIFIED', '10'))
    })
    assert.deepEqual(await peer.watched('svc-a', 3, '7'), ['ADDED 8', 'BOOKMARK 9', 'MODIFIED 10'])
    const versions = peer.asked.filter((each) => each.watch !== undefined).map(({ query }) => query?.resourceVersion)
    assert.deepEqual(versions, ['7', '9'])
    assert.deepEqual(peer.states.slice(0, 3), ['open', 'closed', 'open'])
  })

  it('a watch from a version that is too old throws Expired; others continue', async () => {
    await using peer = await startPeer(({ watch: id, query }, _, say) => {
      if (id === undefined) return
      const expired = { kind: 'Status', message: 'too old', reason: 'Expired', code: 410 }
      if (query?.resourceVersion === '1') say({ watch: id, type: 'ERROR', object: expired })
      else setTimeout(() => say(event(id, 'ADDED', '5')), 20)
    })
    const other = peer.watched('svc-b', 1, '4')
    await assert.rejects(peer.watched('svc-a', 1, '1'), { reason: 'Expired' })
    assert.deepEqual(await other, ['ADDED 5'])
    assert.equal(peer.connections(), 1)
  })

  it('messages without an event of a watch are ignored', async () => {
    await using peer = await startPeer(({ watch: id }, socket, say) => {
      if (id === undefined) return
      for (const text of ['', 'x', 'null', '[]', '[1]', '{"type":"ADDED"}', '{"watch":99,"type":"ADDED"}'])
        socket.send(text)
      say(event(id, 'ADDED', '3'))
    })
    assert.deepEqual(await peer.watched('svc-a', 1), ['ADDED 3'])
  })
})
