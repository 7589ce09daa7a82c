// A stand-in for the service's connections to VMs: one VM, "demo", and real WebSockets to a guest that a test plays.
import { createServer, STATUS_CODES } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { ApiError, notFound } from '../../../src/api/errors.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { send } from './api.ts'
import { vmOf } from './fleet.ts'

export interface TunnelService extends AsyncDisposable {
  readonly apiUrl: string
  readonly token: string
  vm: Vm
  /** Requested ports, in order. */
  readonly asked: string[]
  /** Plays the guest; a thrown ApiError refuses the connection. */
  guest: (connection: WebSocket, port: string, count: number) => void
  /** Refuses a connection. */
  refuse: ((count: number) => ApiError | undefined) | undefined
}

const prefix = '/api/v1/namespaces/svc-default/vms/'

export async function startTunnelService(token = 'test-token-1234'): Promise<TunnelService> {
  const sockets = new WebSocketServer({ noServer: true })
  const server = createServer((request, response) => {
    const name = request.url?.slice(prefix.length) ?? ''
    if (name === service.vm.name) return send(response, 200, service.vm)
    send(response, 404, notFound('vms', name).toStatus('request-1'))
  })
  server.on('upgrade', (request, socket, head) => {
    const url = new URL(request.url ?? '', 'http://x')
    const port = url.searchParams.get('port') ?? ''
    service.asked.push(port)
    const count = service.asked.length
    const isKnown = request.headers.authorization === `Bearer ${token}`
    const isThere = url.pathname === `${prefix}${service.vm.name}/connect`
    const refusal = !isKnown
      ? new ApiError('Unauthorized', 'Unauthorized: bad token')
      : isThere
        ? service.refuse?.(count)
        : notFound('vms', url.pathname.split('/').at(-2) ?? '')
    if (!refusal) return sockets.handleUpgrade(request, socket, head, (ws) => service.guest(ws, port, count))
    const body = JSON.stringify(refusal.toStatus('request-1'))
    socket.end(
      `HTTP/1.1 ${refusal.code} ${STATUS_CODES[refusal.code]}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const service: TunnelService = {
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    vm: vmOf({ name: 'demo' }),
    asked: [],
    guest: () => undefined,
    refuse: undefined,
    async [Symbol.asyncDispose]() {
      for (const client of sockets.clients) client.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return service
}
