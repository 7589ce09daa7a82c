// The Kubernetes port of a service in this process: injected requests, or a real connection for watches.
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import type { App } from '../../../src/server/gate/charges.ts'
import { createKubernetesApp } from '../../../src/server/kubernetes/app.ts'
import type { Answer, CallOptions, TestService } from './service.ts'

export interface KubernetesRig extends AsyncDisposable {
  readonly app: App
  call(method: string, url: string, options?: CallOptions): Promise<Answer>
  /** Events over TLS. */
  watch(url: string, options?: { token?: string; accept?: string }): Promise<Watching>
}

interface Watching {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of every kind
  readonly events: any[]
  /** Resolves after `count` events, or when the watch has ended. */
  until(count: number): Promise<void>
  readonly ended: Promise<void>
  close(): void
}

export function startKubernetes(service: TestService): KubernetesRig {
  const app = createKubernetesApp(service.services)
  let listening: Promise<unknown> | undefined
  const watches = new Set<Watching>()
  return {
    app,
    async call(method, url, { token = service.adminToken, body, headers = {} } = {}) {
      const {
        statusCode,
        headers: answered,
        payload,
      } = await app.inject({
        method: method as 'GET',
        url,
        headers: {
          ...(token !== null && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && {
          payload: typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body),
        }),
      })
      const isJson = String(answered['content-type'] ?? '').startsWith('application/json')
      return {
        status: statusCode,
        headers: answered,
        text: payload,
        body: isJson && payload !== '' ? JSON.parse(payload) : undefined,
      }
    },
    async watch(url, { token = service.adminToken, accept = 'application/json' } = {}) {
      listening ??= app.listen({ host: '127.0.0.1', port: 0 })
      await listening
      const { port } = app.server.address() as AddressInfo
      const ca = (await service.services.certificates.current()).certificate
      const watching = await openWatch(port, url, { ca, token, accept })
      watches.add(watching)
      return watching
    },
    [Symbol.asyncDispose]: async () => {
      for (const each of watches) each.close()
      await app.close()
    },
  }
}

function openWatch(
  port: number,
  path: string,
  { ca, token, accept }: { ca: string; token: string; accept: string },
): Promise<Watching> {
  return new Promise((resolve, reject) => {
    const request = https.get(
      { host: '127.0.0.1', port, path, ca, headers: { authorization: `Bearer ${token}`, accept }, agent: false },
      (response) => {
        const events: unknown[] = []
        const waiting = new Set<() => void>()
        let rest = ''
        let isOver = false
        const wake = (): void => {
          for (const each of waiting) each()
        }
        response.setEncoding('utf8')
        response.on('data', (text: string) => {
          const lines = (rest + text).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) if (line !== '') events.push(JSON.parse(line))
          wake()
        })
        const ended = new Promise<void>((done) =>
          response.once('close', () => {
            isOver = true
            wake()
            done()
          }),
        )
        response.on('error', () => undefined)
        resolve({
          status: response.statusCode ?? 0,
          events,
          ended,
          until: (count) =>
            new Promise<void>((done) => {
              const look = (): void => {
                if (events.length < count && !isOver) return
                waiting.delete(look)
                done()
              }
              waiting.add(look)
              look()
            }),
          close: () => request.destroy(),
        })
      },
    )
    request.on('error', reject)
  })
}
