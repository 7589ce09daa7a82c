// Doors that are open without a token.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from './attacker.ts'
import type { Doors } from './suite.ts'
import { startTarget, type Target } from './target.ts'

/** Many requests in one write, whose answers are never read. */
async function pipelined(attacker: Attacker, url: string, connections: number, requests: number): Promise<void> {
  const { pathname, host } = new URL(url)
  const bytes = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(requests)
  await attacker.many(connections, connections, async () => {
    const socket = await attacker.connect(url)
    socket.pause()
    attacker.sent += requests
    await attacker.write(socket, bytes)
  })
  await sleep(1_500)
}

const pipelines: readonly [string, (target: Target) => string][] = [
  ['static files', ({ apiUrl }) => `${apiUrl}/api/v1/swagger/files/swagger-ui-bundle.js`],
  ['the console', ({ apiUrl }) => `${apiUrl}/console/`],
  ['health checks', ({ apiUrl }) => `${apiUrl}/healthz`],
  ['the Kubernetes API groups', ({ kubernetesUrl }) => `${kubernetesUrl}/apis`],
]

export const anonymous: Doors<Target> = {
  start: startTarget,
  doors: [
    ...pipelines.map(([what, url]) => ({
      name: `anonymous: ${what}, pipelined and unread`,
      attack: (attacker: Attacker, target: Target) => pipelined(attacker, url(target), attacker.times(50), 300),
    })),
  ],
}
