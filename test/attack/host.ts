// The parts of an agent that talk to guests and to other nodes, in a process of their own: node host.ts FOLDER. It prints its
// address. A request with a path of `parts` does that part once, as an agent does, and answers how it ended as JSON.
import fs from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { createPeers } from '../../src/agent/images/peers.ts'
import type { NodeCredentials } from '../../src/agent/link/peer-tls.ts'
import { probeSsh } from '../../src/agent/vms/guest-watch.ts'
import type { Peer } from '../../src/api/nodes/agent.ts'
import { flushGuest } from '../../src/drivers/qemu/control/flush-guest.ts'
import { GuestAgent } from '../../src/drivers/qemu/control/guest-agent.ts'
import { passesIn } from '../../src/drivers/qemu/control/guest-command.ts'
import { connectQmp, type Qmp } from '../../src/drivers/qemu/control/qmp.ts'
import { qmpSocket } from '../../src/drivers/qemu/control/sockets.ts'
import { tellGuest } from '../../src/drivers/qemu/control/tell-guest.ts'
import { serveDisk } from '../../src/images/nbd/server.ts'
import { createLog } from '../../src/platform/log.ts'
import { reasonOf } from '../../src/platform/reason.ts'

export interface HostRequest {
  /** With the sockets of a QEMU. */
  readonly runtime?: string
  readonly port?: number
  readonly peer?: Peer
  readonly credentials?: NodeCredentials
  readonly digest?: string
}

const diskBytes = 2 ** 30
const nbdSocket = path.join(process.argv[2] ?? '', 'nbd', 'disk')
/** Every part ends within this time, whatever the other side does. */
const timeoutMs = 20_000
const log = createLog('info', (line) => process.stdout.write(line))
const own = { hostname: 'second', mac0: '52:54:00:00:00:01', mac1: '52:54:00:00:00:02' }
const port: Qmp = {
  execute: async () => [{ label: 'agent', 'frontend-open': true }],
  closed: new Promise(() => undefined),
  waitFor: async () => false,
  close: () => undefined,
}

async function withGuest<T>(runtime: string, act: (agent: GuestAgent) => Promise<T>): Promise<T> {
  using agent = new GuestAgent(runtime, AbortSignal.timeout(timeoutMs))
  return await act(agent)
}

const parts: Readonly<Record<string, (request: HostRequest) => Promise<unknown>>> = {
  '/flush': ({ runtime = '' }) => withGuest(runtime, (agent) => flushGuest(agent, runtime)),
  '/tell': ({ runtime = '' }) => withGuest(runtime, (agent) => tellGuest(port, agent, own)),
  '/exec': ({ runtime = '' }) => withGuest(runtime, (agent) => passesIn(agent, 'true', AbortSignal.timeout(5_000))),
  '/qmp': async ({ runtime = '' }) => {
    const qmp = await connectQmp(qmpSocket(runtime), 2_000)
    try {
      const shutdown = qmp.waitFor('SHUTDOWN', 4_000)
      await Promise.all(Array.from({ length: 20 }, () => qmp.execute('query-status', undefined, 3_000).catch(() => 0)))
      return await shutdown
    } finally {
      qmp.close()
    }
  },
  '/ssh': ({ port: ssh = 0 }) => probeSsh({ ip: '127.0.0.1', port: ssh }, AbortSignal.timeout(timeoutMs)),
  '/peer': async ({ peer, credentials, digest = '' }) => {
    const during = AbortSignal.timeout(timeoutMs)
    const peers = createPeers({ find: async () => (peer ? [peer] : []), credentials: () => credentials, log })
    const near = await peers.near(digest, during)
    return (await near?.(digest, during))?.length
  },
}

// Read by another thread, as content is.
const zeroes = await fs.open('/dev/zero')
const disk = { bytes: diskBytes, read: async (target: Buffer) => void (await zeroes.read(target, 0, target.length, 0)) }
await serveDisk(nbdSocket, disk)

const server = http.createServer(async (request, response) => {
  const part = parts[request.url ?? '']
  // The watcher pings a path that is no part.
  if (!part) return response.end()
  const outcome = await part(JSON.parse(await text(request)) as HostRequest).then(
    (ended) => ({ ended }),
    (error: unknown) => ({ problem: reasonOf(error), kind: (error as Error).name }),
  )
  return response.end(JSON.stringify(outcome))
})
// On a busy machine, the watcher may not send a request for a while.
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
