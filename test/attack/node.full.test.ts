// Doors of a node: what can be done with the token of its agent.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { digestOf } from '../../src/images/format/manifest.ts'
import { type Attacker, frame } from './attacker.ts'
import { attackAll, isLong } from './suite.ts'
import { startTarget, type Target, team } from './target.ts'

const report = {
  ip: '127.0.0.1',
  architecture: 'amd64',
  cpu: 8,
  memoryMiB: 16_384,
  gpus: 0,
  diskFreeGb: 200,
  driver: 'attack',
  driverVersion: '1',
  version: '0.0.0-test',
  os: 'test',
  images: [] as readonly string[],
  busyPorts: [] as readonly number[],
}

const say = (attacker: Attacker, { apiUrl, tokens }: Target, what: string, body: unknown) =>
  attacker.call('POST', `${apiUrl}/api/v1/agent/${what}`, { token: tokens.node, body })

attackAll<Target>('nodes', {
  start: startTarget,
  doors: [
    {
      name: 'node: blobs that belong to no capture',
      attack: async (attacker, { apiUrl, tokens }) => {
        const headers = { 'content-type': 'application/octet-stream' }
        await attacker.many(attacker.times(16), 4, async (index) => {
          const body = randomBytes((index % 4) * 2 ** 20 + 2 ** 22)
          await attacker.call('PUT', `${apiUrl}/api/v1/agent/blobs/${digestOf(body)}`, {
            token: tokens.node,
            body,
            headers,
          })
        })
        await attacker.many(attacker.times(1_000), 20, async (index) => {
          const body = randomBytes(64)
          const url = `${apiUrl}/api/v1/agent/blobs/${index % 2 === 0 ? digestOf(body) : digestOf('other')}`
          await attacker.call('PUT', url, { token: tokens.node, body, headers })
        })
      },
    },
    {
      name: 'node: questions about content, 5,000 digests at a time',
      attack: async (attacker, target) => {
        const digests = Array.from({ length: 5_000 }, (_, index) => digestOf(`${index}`))
        await attacker.many(attacker.times(30), 5, () => say(attacker, target, 'blobs/missing', { digests }))
      },
    },
    {
      name: 'node: reports of itself as large as they may be',
      attack: async (attacker, target) => {
        const images = Array.from({ length: 999 }, (_, index) => `${index}${'i'.repeat(500)}`)
        const busyPorts = Array.from({ length: 20_000 }, (_, index) => index + 1)
        await attacker.many(attacker.times(80), 5, (index) =>
          say(attacker, target, 'node', { ...report, images: [...images, `${index}`], busyPorts, diskFreeGb: index }),
        )
        await say(attacker, target, 'node', { ...report, diskFreeGb: 2 ** 53, memoryMiB: 1e9, cpu: 4_096 })
        for (const ip of ['127.0.0.1:22', '::1', '999.0.0.1', '0'.repeat(1_000_000)])
          assert.equal((await say(attacker, target, 'node', { ...report, ip })).status, 422, ip.slice(0, 20))
      },
      // The server keeps some past versions of a record, here of 0.6 MB each: 1,200 reports cost no more than 256 MB.
      limits: isLong ? { rssMb: 300 } : {},
    },
    {
      name: 'node: reports of VMs that do not exist',
      attack: async (attacker, target) => {
        const vms = Array.from({ length: 1_000 }, (_, index) => ({
          uid: `${index}-${'u'.repeat(200)}`,
          namespace: team,
          name: `vm-${index}`,
          generation: 2 ** 52,
          power: 'running',
          problem: 'p'.repeat(500),
        }))
        await attacker.many(attacker.times(60), 5, () => say(attacker, target, 'vms', { vms }))
      },
    },
    {
      name: 'node: boot orders and peers of content that does not exist',
      attack: async (attacker, target) => {
        const chunks = Array.from({ length: 64 }, (_, index) => index * 100_000)
        await attacker.many(attacker.times(2_000), 20, (index) =>
          index % 2 === 0
            ? say(attacker, target, 'boot-order', { content: digestOf(`${index}`), chunks })
            : say(attacker, target, 'peers', { content: `${index}`, chunk: digestOf(`${index}`) }),
        )
      },
    },
    {
      name: 'node: calls on its connection whose answers are never read',
      attack: async (attacker, { apiUrl, tokens }) => {
        const call = (id: number, operation: string, body?: unknown): Buffer =>
          frame(1, `${JSON.stringify({ id, operation, body })}\n`)
        const floods = [
          Buffer.concat(Array.from({ length: 40_000 }, (_, id) => call(id, 'noteAgent'))),
          Buffer.concat(Array.from({ length: 20_000 }, (_, id) => call(id, 'noSuchOperation', { a: 1 }))),
          Buffer.concat(Array.from({ length: 400 }, (_, id) => call(id, 'reportVms', { vms: Array(400).fill({}) }))),
          Buffer.alloc(4_000_000, frame(1, '[[[[[[[[[[')),
          Buffer.alloc(2_000_000, frame(9, 'p'.repeat(125))),
        ]
        for (const bytes of floods) {
          const socket = await attacker.upgrade(`${apiUrl}/api/v1/agent/connection`, tokens.node)
          await attacker.write(socket, bytes, 3_000)
          await sleep(300)
          socket.destroy()
        }
        assert.equal(attacker.statuses.get(101), floods.length)
      },
    },
    {
      name: 'node: tunnels that were not requested, and operations of other callers',
      attack: async (attacker, { apiUrl, tokens: { node: token } }) => {
        await attacker.many(attacker.times(300), 10, async (index) => {
          const socket = await attacker.upgrade(`${apiUrl}/api/v1/agent/tunnels/${index}`, token)
          socket.destroy()
        })
        for (const where of [`/namespaces/${team}/vms`, '/namespaces', `/namespaces/${team}/events`])
          assert.equal((await attacker.call('GET', `${apiUrl}/api/v1${where}`, { token })).status, 403, where)
      },
    },
  ],
})
