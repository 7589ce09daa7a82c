// Doors of tunnels and terminals: a developer on one end, and on the other a guest whose SSH server is hostile.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import ssh2 from 'ssh2'
import { startAgent } from '../../src/agent/agent.ts'
import { SimulatedDriver } from '../../src/drivers/simulated.ts'
import { silentLog } from '../../src/platform/log.ts'
import { eventually } from '../support/tools/eventually.ts'
import { type Attacker, frame, repeated } from './attacker.ts'
import { type Behaviour, floods } from './hostile-guest.ts'
import { attackAll, isLong } from './suite.ts'
import { startTarget, type Target, team } from './target.ts'

interface ConnectionsTarget extends Target {
  /** The VM `guest` behaves like this from now on. */
  behave(behaviour: Behaviour): void
  /** Connections that the guest has at the moment. */
  readonly guestConnections: ReadonlySet<net.Socket>
}

/** An agent of this process has the VM `guest`, whose SSH port this process holds. */
async function startWithGuest(): Promise<ConnectionsTarget> {
  const target = await startTarget()
  const folder = path.join(target.folder, 'node')
  // An address that no other program on this machine uses.
  const ip = `127.44.${process.pid % 250}.${1 + (process.pid % 249)}`
  const { token } = await target.admin('POST', `/namespaces/${team}/jointokens`, {})
  const agent = await startAgent({
    apiUrls: [target.apiUrl],
    folder,
    imageFolder: path.join(folder, 'images'),
    name: 'mini-1',
    version: '3.0.0-test',
    driver: new SimulatedDriver(),
    capacity: { architecture: 'amd64', ip, cpu: 8, memoryMiB: 16_384 },
    joinToken: async () => token,
    log: silentLog,
  })
  await agent.ready
  await target.admin('POST', `/namespaces/${team}/vms`, { name: 'guest', image: 'any', cpu: 1, memory: 1 })
  const vm = await eventually(async () => {
    const shown = await target.admin('GET', `/namespaces/${team}/vms/guest`)
    assert.equal(shown.powerState, 'running')
    return shown
  }, 30_000)
  let behaviour: Behaviour = (socket) => socket.destroy()
  const guestConnections = new Set<net.Socket>()
  const guest = net.createServer({ allowHalfOpen: true }, (socket) => {
    guestConnections.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => guestConnections.delete(socket))
    socket.on('end', () => socket.end())
    behaviour(socket)
  })
  guest.listen(vm.ssh, ip)
  await once(guest, 'listening')
  const end = target[Symbol.asyncDispose]
  return {
    ...target,
    guestConnections,
    behave: (next) => {
      for (const socket of guestConnections) socket.destroy()
      behaviour = next
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of guestConnections) socket.destroy()
      guest.close()
      await agent.stop()
      await end()
    },
  }
}

const doorOf = ({ apiUrl }: Target, kind: 'connect' | 'terminal', vm = 'guest'): string =>
  `${apiUrl}/api/v1/namespaces/${team}/vms/${vm}/${kind}`

const tunnel = (attacker: Attacker, target: Target): Promise<net.Socket> =>
  attacker.upgrade(doorOf(target, 'connect'), target.tokens.developer)

const listens: Behaviour = (socket) => socket.resume()

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2_048,
  privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
})

/** A guest that accepts every login, and then does something with the connection. */
function sshGuest(entered: (client: ssh2.Connection, socket: net.Socket) => void): Behaviour {
  return (socket) => {
    const server = new ssh2.Server({ hostKeys: [privateKey] }, (client) => {
      client.on('error', () => undefined)
      client.on('authentication', (attempt) => attempt.accept())
      client.on('session', (accept) => {
        const session = accept()
        session.on('pty', (accepted) => accepted?.())
        session.on('shell', (accepted) => {
          accepted()
          setTimeout(() => entered(client, socket), 200)
        })
      })
    })
    server.injectSocket(socket as never)
  }
}

const login = frame(1, JSON.stringify({ type: 'open', user: 'admin', password: 'secret', columns: 80, rows: 24 }))

/** A terminal whose login has been sent. */
async function terminal(attacker: Attacker, target: Target): Promise<net.Socket> {
  const socket = await attacker.upgrade(doorOf(target, 'terminal'), target.tokens.developer)
  await attacker.write(socket, login)
  return socket
}

/** What may listen on the SSH port of a guest instead of SSH. */
const noSsh: readonly Behaviour[] = [
  floods('welcome to this guest\r\n'.repeat(1_000)),
  floods('SSH-2.0-'.padEnd(65_536, 'x')),
  floods('\x1b]0;x\x07\u009b2J\0\xff\r'.repeat(2_000)),
  (socket) => {
    socket.write('SSH-2.0-x\r\n')
    return floods(Buffer.alloc(65_536, '\x00\x00\x88\xb8\x04\x14'))(socket)
  },
  () => undefined,
]

attackAll<ConnectionsTarget>('tunnels and terminals', {
  start: startWithGuest,
  doors: [
    {
      name: 'tunnels: of a VM of another namespace',
      attack: async (attacker, target) => {
        let isDialled = false
        target.behave((socket) => {
          isDialled = true
          socket.destroy()
        })
        for (const token of [target.tokens.other, target.tokens.lowest])
          for (const kind of ['connect', 'terminal'] as const) {
            const before = attacker.statuses.get(403) ?? 0
            await attacker.upgrade(doorOf(target, kind), token)
            await attacker.upgrade(doorOf(target, kind, 'none'), token)
            assert.equal(attacker.statuses.get(403), before + 2, `${kind} is refused, also of a VM that does not exist`)
          }
        assert.ok(!isDialled, 'the guest was not dialled')
      },
    },
    {
      name: 'tunnels: a guest that sends without end to callers that do not read',
      attack: async (attacker, target) => {
        target.behave(floods(Buffer.alloc(65_536)))
        await attacker.many(attacker.times(60), 20, () => tunnel(attacker, target))
        await sleep(3_000)
      },
    },
    {
      name: 'tunnels: tiny messages to a guest that does not read',
      attack: async (attacker, target) => {
        target.behave(() => undefined)
        const bytes = repeated(frame(2, 'a'), 10_000)
        await attacker.many(attacker.times(5), 5, async () => {
          await attacker.write(await tunnel(attacker, target), bytes)
        })
      },
    },
    {
      name: 'tunnels: half closed on either side',
      attack: async (attacker, target) => {
        for (const behaviour of [(socket: net.Socket) => socket.resume().end('bye'), listens]) {
          target.behave(behaviour)
          await attacker.many(attacker.times(60), 20, async (index) => {
            const socket = await tunnel(attacker, target)
            if (index % 3 === 0) socket.end()
            else if (index % 3 === 1) socket.end(frame(8))
            else socket.destroy()
          })
        }
        await sleep(500)
        attacker.end()
        await eventually(() => assert.equal(target.guestConnections.size, 0, 'connections to the guest stay'), 10_000)
      },
    },
    {
      name: 'tunnels: opened and left at once',
      attack: async (attacker, target) => {
        target.behave(listens)
        await attacker.many(attacker.times(200), 50, async () => {
          const socket = await attacker.connect(target.apiUrl)
          const { pathname, host } = new URL(doorOf(target, 'connect'))
          const head = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${target.tokens.developer}\r\n`
          attacker.sent++
          await attacker.write(socket, `${head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'a'.repeat(22)}==\r\n\r\n`) // biome-ignore format: one call
          socket.destroy()
        })
        await eventually(() => assert.equal(target.guestConnections.size, 0, 'connections to the guest stay'), 20_000)
      },
      // The server notices that a caller has left when the agent has answered, and at most 1,000 tunnels wait for agents.
      limits: isLong ? { descriptors: 1_000, heldMs: 500 } : {},
    },
    ...Object.entries({
      'small messages that are none': frame(1, '{"type":"no"}'),
      'large messages that are none': frame(1, `"${'['.repeat(60_000)}`),
      'input before the shell': frame(2, 'a'.repeat(1_000)),
      'one login again and again': login,
    }).map(([what, message]) => ({
      name: `terminals: ${what}`,
      attack: async (attacker: Attacker, target: ConnectionsTarget) => {
        target.behave(() => undefined)
        await attacker.many(attacker.times(12), 3, async () => {
          const socket = await terminal(attacker, target)
          await attacker.write(socket, repeated(message, 2_000))
          await sleep(300)
          socket.destroy()
        })
      },
    })),
    {
      name: 'terminals: new sizes by the thousand for a guest that does not read',
      attack: async (attacker, target) => {
        let entered = 0
        target.behave(
          sshGuest((_, guest) => {
            guest.pause()
            entered++
          }),
        )
        const sizes = repeated(frame(1, JSON.stringify({ type: 'resize', columns: 80, rows: 24 })), 20_000)
        const socket = await terminal(attacker, target)
        await eventually(() => assert.equal(entered, 1, 'the shell was opened'), 15_000)
        for (let count = 0; count < attacker.times(1); count++) await attacker.write(socket, sizes, 1_000)
      },
    },
    {
      name: 'terminals: a guest that asks without end and does not read the answers',
      attack: async (attacker, target) => {
        let entered = 0
        target.behave(
          sshGuest((client, guest) => {
            entered++
            guest.pause()
            const { _protocol: protocol } = client as unknown as { readonly _protocol: { ping(): void } }
            const endMs = performance.now() + 4_000
            const more = (): void => {
              if (guest.destroyed || performance.now() > endMs) return
              for (let count = 0; count < 300 && guest.writableLength < 2 ** 20; count++) protocol.ping()
              setTimeout(more, 1)
            }
            more()
          }),
        )
        await terminal(attacker, target)
        await eventually(() => assert.equal(entered, 1, 'the shell was opened'), 15_000)
        await sleep(4_500)
      },
    },
    {
      name: 'terminals: guests whose SSH greeting is endless, one line, control characters, or no SSH at all',
      attack: async (attacker, target) => {
        let greeted = 0
        target.behave((socket) => noSsh[greeted++ % noSsh.length]?.(socket))
        const open: net.Socket[] = []
        await attacker.many(attacker.times(20), 10, async () => open.push(await terminal(attacker, target)))
        await eventually(() => assert.ok(greeted >= noSsh.length, 'the guest was dialled'), 15_000)
        await sleep(4_000)
        for (const socket of open) socket.destroy()
      },
    },
  ],
})
