// The HTTP client and servers that do not finish their answers.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import { createHttpClient } from './http.ts'

it('an answer that is cut off by an abort is an error for its reader, and does not end the process', {
  timeout: 20_000,
}, async () => {
  const server = http.createServer((_request, response) => {
    response.writeHead(200, { 'content-length': 1_000 })
    response.write('{')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = createHttpClient({ idleMs: 10_000, maxSockets: 1 })
  try {
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    const abort = new AbortController()
    const { body } = await client.send({ method: 'GET', url, signal: abort.signal })
    const failed = assert.rejects(body.toArray(), { name: 'AbortError' })
    abort.abort()
    await failed
  } finally {
    client.close()
    server.closeAllConnections()
    server.close()
  }
})
