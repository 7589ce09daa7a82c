// Doors that are open without a token.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from './attacker.ts'
import { attackAll, isLong } from './suite.ts'
import { startTarget, type Target, team } from './target.ts'

const bundle = '/api/v1/swagger/files/swagger-ui-bundle.js'

const requestFor = (url: string, headers = ''): string => {
  const { pathname, host } = new URL(url)
  return `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n`
}

/** Many requests in one write on each of 75 connections, whose answers are never read. */
async function pipelined(attacker: Attacker, url: string): Promise<void> {
  const connections = 75
  for (let round = 0; round < attacker.times(1); round++) {
    const sockets: Socket[] = []
    await attacker.many(connections, connections, async (index) => {
      const socket = await attacker.connect(url)
      if (!socket.destroyed) sockets.push(socket)
      // A connection with more than the server keeps waiting is closed, so some send fewer.
      const requests = index % 2 === 0 ? 300 : 30
      attacker.sent += requests
      await attacker.write(socket, requestFor(url).repeat(requests))
    })
    assert.ok(sockets.length > connections / 2, `${sockets.length} of ${connections} connections were accepted`)
    await sleep(1_000)
    for (const socket of sockets) socket.destroy()
  }
}

const pipelines: Readonly<Record<string, (target: Target) => string>> = {
  'static files': ({ apiUrl }) => `${apiUrl}${bundle}`,
  'static files over TLS': ({ apiUrl }) => `${apiUrl.replace('http:', 'https:')}${bundle}`,
  'the console': ({ apiUrl }) => `${apiUrl}/console/`,
  'health checks': ({ apiUrl }) => `${apiUrl}/healthz`,
  refusals: ({ apiUrl }) => `${apiUrl}/api/v1/namespaces/${team}/vms`,
  'the Kubernetes API groups': ({ kubernetesUrl }) => `${kubernetesUrl}/apis`,
}

attackAll<Target>('anonymous callers', {
  start: startTarget,
  doors: [
    ...Object.entries(pipelines).map(([what, url]) => ({
      name: `anonymous: ${what}, pipelined and unread`,
      attack: (attacker: Attacker, target: Target) => pipelined(attacker, url(target)),
      // A burst of 75 connections takes 0.2 to 0.4 s in all, and in a long run some requests of others arrive at its beginning.
      limits: isLong ? { heldMs: 500 } : {},
    })),
    {
      name: 'anonymous: large answers that are never read',
      attack: async (attacker, { apiUrl, kubernetesUrl }) => {
        await attacker.many(attacker.times(200), 50, async (index) => {
          const url = index % 2 === 0 ? `${apiUrl}${bundle}` : `${kubernetesUrl}/version`
          attacker.sent++
          await attacker.write(await attacker.connect(url), requestFor(url))
        })
        await sleep(1_000)
      },
    },
    {
      name: 'anonymous: connections that send almost nothing',
      attack: async (attacker, { apiUrl, kubernetesUrl }) => {
        const beginnings = ['', 'G', 'GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ', '\x16\x03\x01\x02\x00\x01']
        await attacker.many(attacker.times(800), 100, async (index) => {
          // TLS of the other port would begin by itself.
          const url = index % 4 === 0 ? kubernetesUrl.replace('https:', 'http:') : apiUrl
          const socket = await attacker.connect(url)
          if (!socket.destroyed) socket.write(beginnings[index % beginnings.length] ?? '')
        })
        await sleep(1_000)
        const { status } = await attacker.call('GET', `${apiUrl}/healthz`)
        assert.ok(status === 200 || status === 0, `answers ${status} to a whole request`)
      },
    },
    {
      name: 'anonymous: headers by the thousand and of any size',
      attack: async (attacker, { apiUrl }) => {
        const headers = [
          'X-A: b\r\n'.repeat(20_000),
          `X-A: ${'b'.repeat(1_000_000)}\r\n`,
          `Cookie: ${'a=b; '.repeat(3_000)}\r\n`,
        ]
        await attacker.many(attacker.times(150), 20, async (index) => {
          const socket = await attacker.connect(apiUrl)
          socket.resume()
          attacker.sent++
          await attacker.write(socket, requestFor(`${apiUrl}/`, headers[index % headers.length]), 1_000)
          socket.destroy()
        })
      },
    },
    {
      name: 'anonymous: TLS that is begun and not finished, and none at all',
      attack: async (attacker, { kubernetesUrl }) => {
        await attacker.many(attacker.times(300), 20, async (index) => {
          const isTls = index % 2 === 0
          const socket = await attacker.connect(isTls ? kubernetesUrl : kubernetesUrl.replace('https:', 'http:'))
          attacker.sent++
          if (!isTls) await attacker.write(socket, '\x16\x03\x01\x40\x00'.repeat(4_000), 500)
          socket.destroy()
        })
      },
    },
    {
      name: 'anonymous: two Host lines, and lengths that contradict each other',
      attack: async (attacker, { apiUrl }) => {
        const { host } = new URL(apiUrl)
        const requests = [
          `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nHost: other.example\r\n\r\n`,
          `POST /api/v1/token HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
          `POST /api/v1/token HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
        ]
        for (const request of requests) {
          const socket = await attacker.connect(apiUrl)
          attacker.sent++
          const answered = once(socket, 'data', { signal: AbortSignal.timeout(30_000) })
          socket.write(request)
          const [answer] = (await answered) as [Buffer]
          assert.match(answer.toString('latin1'), /^HTTP\/1\.1 400 /, request)
          socket.destroy()
        }
      },
    },
    {
      name: 'anonymous: bodies that never end, and logins',
      attack: async (attacker, { apiUrl }) => {
        await attacker.many(attacker.times(40), 40, async () => {
          const socket = await attacker.connect(apiUrl)
          attacker.sent++
          const head = `POST /api/v1/token HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
          await attacker.write(socket, head)
          for (let count = 0; count < 64 && !socket.destroyed; count++)
            if (!(await attacker.write(socket, `10000\r\n${'['.repeat(65_536)}\r\n`, 500))) break
        })
        await attacker.many(attacker.times(600), 20, (index) =>
          attacker.call('POST', `${apiUrl}/api/v1/token`, { body: { idToken: 'e30.'.repeat(index * 20) } }),
        )
      },
    },
  ],
})
