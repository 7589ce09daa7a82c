// Doors of a user without any role.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attacker, frame, repeated } from './attacker.ts'
import { attackAll } from './suite.ts'
import { others, startTarget, type Target, team } from './target.ts'

const [continuation, text, ping] = [0, 1, 9]

/** Writes these frames to one WebSocket, and reads nothing. */
async function flood(attacker: Attacker, { apiUrl, tokens }: Target, frames: readonly Buffer[]): Promise<void> {
  const socket = await attacker.upgrade(`${apiUrl}/api/v1/watch`, tokens.lowest)
  for (const bytes of frames) if (!(await attacker.write(socket, bytes, 3_000))) break
  await sleep(500)
  socket.destroy()
}

const batches = (count: number, bytes: Buffer): Buffer[] => Array.from({ length: count }, () => bytes)

attackAll<Target>('users without a role', {
  start: startTarget,
  doors: [
    {
      name: 'lowest role: WebSocket pings whose pongs are never read',
      attack: (attacker, target) =>
        flood(attacker, target, batches(attacker.times(30), repeated(frame(ping, 'a'.repeat(125)), 20_000))),
    },
    {
      name: 'lowest role: small WebSocket messages',
      attack: (attacker, target) =>
        flood(attacker, target, batches(attacker.times(20), repeated(frame(text, '{"unwatch":1}'), 10_000))),
    },
    {
      name: 'lowest role: one WebSocket message in fragments of one byte',
      attack: async (attacker, target) => {
        await flood(attacker, target, [
          frame(text, '"', false),
          ...batches(attacker.times(20), repeated(frame(continuation, 'a', false), 20_000)),
        ])
      },
    },
    {
      name: 'lowest role: watches that are begun and ended without reading',
      attack: async (attacker, target) => {
        const pair = (namespace: string): Buffer =>
          Buffer.concat([
            frame(text, JSON.stringify({ watch: 1, path: `/api/v1/namespaces/${namespace}/vms`, query: {} })),
            frame(text, JSON.stringify({ unwatch: 1 })),
          ])
        await flood(attacker, target, batches(attacker.times(5), repeated(pair(team), 2_000)))
        const all = Array.from({ length: 2_000 }, (_, watch) =>
          frame(text, JSON.stringify({ watch, path: '/api/v1/namespaces', query: {} })),
        )
        await flood(attacker, target, [Buffer.concat(all)])
      },
    },
    {
      name: 'lowest role: lists and changes that are forbidden',
      attack: async (attacker, { apiUrl, kubernetesUrl, tokens }) => {
        const { lowest: token } = tokens
        const urls = [
          `${apiUrl}/api/v1/namespaces/${others}/vms`,
          `${apiUrl}/api/v1/namespaces/${others}/events`,
          `${kubernetesUrl}/apis/orka.macstadium.com/v1/namespaces/orka-others/virtualmachineconfigs`,
          `${apiUrl}/api/v1/no/such/path`,
        ]
        await attacker.many(attacker.times(6_000), 30, async (index) => {
          const { status } = await attacker.call('GET', urls[index % urls.length] ?? '', { token })
          assert.ok(status >= 400 || status === 0, `${urls[index % urls.length]} answers ${status}`)
        })
      },
    },
  ],
})
