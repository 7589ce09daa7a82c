// TLS connections to servers that stay silent, close the connection, use another protocol or are not trusted.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { generate } from 'selfsigned'
import { httpTransport } from './http.ts'
import type { Trust } from './tls.ts'
import { ConnectionError, type TransportRequest } from './transport.ts'

const trust: Trust = { judge: () => assert.fail('there was nothing to judge') }

async function against(behave: (socket: net.Socket) => void, check: (request: TransportRequest) => Promise<void>) {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    behave(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/x`
  try {
    for (const fresh of [false, true])
      await check({ method: 'GET', url, headers: {}, body: undefined, signal: AbortSignal.timeout(120_000), fresh })
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

const faultOf =
  (fault: string, code: RegExp) =>
  (error: unknown): boolean =>
    error instanceof ConnectionError && error.fault === fault && code.test(error.message)

describe('https servers', () => {
  it('a connection to a silent https server ends when the caller aborts', async () => {
    await against(
      () => undefined,
      async (request) => {
        const reason = new Error('enough')
        const controller = new AbortController()
        const sent = httpTransport({ trust })({ ...request, signal: controller.signal })
        setTimeout(() => controller.abort(reason), 50)
        await assert.rejects(sent, reason)
      },
    )
  })

  it('an https server that closes the connection is a lost connection', async () => {
    await against(
      (socket) => socket.once('data', () => socket.destroy()),
      (request) => assert.rejects(httpTransport({ trust })(request), faultOf('lost', /ECONNRESET/)),
    )
  })

  it('an https server that the judge refuses is refused with the error of the judge', async () => {
    const { private: key, cert } = await generate([{ name: 'commonName', value: 'localhost' }])
    const server = https.createServer({ key, cert }, (_, response) => response.end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const refusal = new ConnectionError('unusable', 'there', 'it is not trusted', 'ask')
      const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/x`
      const request = { method: 'GET', url, headers: {}, body: undefined, signal: AbortSignal.timeout(20_000) } as const
      for (const fresh of [false, true])
        await assert.rejects(httpTransport({ trust: { judge: () => refusal } })({ ...request, fresh }), refusal)
    } finally {
      server.close()
    }
  })

  it('an https server that uses plain HTTP is recognized', async () => {
    await against(
      (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      async (request) => {
        const error = await httpTransport({ trust })(request).catch((reason: unknown) => reason)
        assert.ok(faultOf('unusable', /does not use TLS/)(error), String(error))
        // An attacker can provoke this error, so the hint must not suggest plain HTTP.
        assert.equal((error as ConnectionError).hint, 'Check the address and the port with the operator of the server')
      },
    )
  })

  it('an https server that does not listen is refused', async () => {
    await against(
      () => undefined,
      async (request) => {
        const url = 'https://127.0.0.1:1/x'
        await assert.rejects(httpTransport({ trust })({ ...request, url }), faultOf('refused', /ECONNREFUSED/))
      },
    )
  })
})
