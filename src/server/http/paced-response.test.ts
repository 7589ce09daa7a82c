// Long bodies, over a connection whose client reads nothing at first.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { PacedResponse } from './paced-response.ts'

describe('a long body', () => {
  const text = `${'x'.repeat(65_535)}\u{1f600}`.repeat(400)
  for (const [what, body] of [
    ['a text', text],
    ['bytes', Buffer.from(text)],
  ] as const)
    it(`${what} is whole, and is given to the connection as the client reads it`, async () => {
      let given = Number.NaN
      let isFinished = false
      const server = http.createServer({ ServerResponse: PacedResponse }, async (_request, response) => {
        response.end(body, () => {
          isFinished = true
        })
        await sleep(200)
        given = response.socket?.bytesWritten ?? 0
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const [response] = (await once(http.get({ port, host: '127.0.0.1', agent: false }), 'response')) as [
        http.IncomingMessage,
      ]
      await sleep(300)
      // The kernel and the client hold some megabytes.
      assert.ok(given < Buffer.byteLength(text) / 2, `${given} bytes`)
      assert.ok(!isFinished)
      const pieces: Buffer[] = []
      for await (const piece of response) pieces.push(piece as Buffer)
      assert.ok(Buffer.concat(pieces).equals(Buffer.from(text)))
      assert.ok(isFinished)
      server.close()
    })
})
