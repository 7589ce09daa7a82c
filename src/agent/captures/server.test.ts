// Calls of captures to a server that does not respond.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isRetriable } from '../link/connection.ts'
import { captureServer } from './server.ts'

it('a chunk that takes more than ten minutes can be retried, with another address', async (test) => {
  test.mock.timers.enable({ apis: ['setTimeout'] })
  let turns = 0
  const server = captureServer({
    apiUrl: 'http://127.0.0.1:1',
    upload: (_operation: unknown, _params: unknown, _body: unknown, signal: AbortSignal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    turn: () => {
      turns += 1
    },
  } as never)
  const sent = server.put('sha256:a', Buffer.alloc(1), new AbortController().signal)
  test.mock.timers.tick(10 * 60_000)
  await assert.rejects(sent, (error) => isRetriable(error) && /did not answer within 600 s/.test(String(error)))
  assert.equal(turns, 1)
})
