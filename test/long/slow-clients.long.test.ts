// Clients that send slowly or never end: they get an error and are disconnected, and all other clients are served.
import assert from 'node:assert/strict'
import net from 'node:net'
import { after, before, describe, it } from 'node:test'
import { credentialsPath, startService, type TestService } from '../support/rigs/service.ts'

let service: TestService
let port: number
before(async () => {
  service = await startService()
  port = Number(new URL(await service.listen()).port)
})
after(() => service[Symbol.asyncDispose]())

/** Sends a byte of a header every second and never ends; resolves with what it is told and when it is let go. */
function drip(): Promise<{ reply: string; seconds: number }> {
  const startMs = performance.now()
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: '))
    const timer = setInterval(() => socket.write('a'), 1_000)
    let reply = ''
    socket.on('data', (chunk) => {
      reply += chunk
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearInterval(timer)
      resolve({ reply, seconds: (performance.now() - startMs) / 1_000 })
    })
  })
}

describe('slow clients', () => {
  it('slow clients are let go within 15 seconds, while others are served at once', { timeout: 60_000 }, async () => {
    const slow = Array.from({ length: 500 }, drip)
    const times: number[] = []
    for (let round = 0; round < 50; round++) {
      const startMs = performance.now()
      const response = await fetch(`${service.apiUrl}${credentialsPath}`, {
        headers: { authorization: `Bearer ${service.adminToken}` },
      })
      assert.equal(response.status, 200)
      await response.arrayBuffer()
      times.push(performance.now() - startMs)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    assert.ok(Math.max(...times) < 1_000, `a good client waited ${Math.max(...times)} ms`)
    for (const { reply, seconds } of await Promise.all(slow)) {
      assert.ok(seconds < 15, `let go after ${seconds} s`)
      assert.match(reply, /^HTTP\/1\.1 408 .*"kind":"Status"/s)
    }
  })
})
