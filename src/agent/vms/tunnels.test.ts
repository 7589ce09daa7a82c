// Connections through the server to a VM's ports and to its console.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import { after, before, describe, it } from 'node:test'
import { AgentRig } from '../../../test/support/rigs/agent-rig.ts'
import { readableLog } from '../../../test/support/tools/agent-log.ts'
import { createTunnels, maxTunnels } from './tunnels.ts'

describe('tunnels of an agent', () => {
  let rig: AgentRig
  let guest: net.Server
  const sockets = new Set<net.Socket>()

  before(async () => {
    rig = await AgentRig.start()
    guest = net.createServer((socket) => {
      sockets.add(socket)
      socket.write('SSH-2.0-guest\r\n')
      socket.on('data', (data) => socket.write(`echo ${data}`)).on('error', () => undefined)
    })
    await once(guest.listen(0, '127.0.0.1'), 'listening')
    const { port } = guest.address() as net.AddressInfo
    await rig.server.fulfilled(rig.server.want({ uid: 'a', ssh: port }))
  })
  after(async () => {
    await rig[Symbol.asyncDispose]()
    for (const socket of sockets) socket.destroy()
    guest.close()
  })

  it('tunnels of an agent transfer bytes in both directions, and end with either side', async () => {
    const tunnel = await rig.server.dial('a', 'ssh')
    assert.equal(String(await once(tunnel, 'data')), 'SSH-2.0-guest\r\n')
    tunnel.write('hello')
    assert.equal(String(await once(tunnel, 'data')), 'echo hello')
    for (const socket of sockets) socket.end()
    await once(tunnel.resume(), 'end')
    sockets.clear()

    const other = await rig.server.dial('a', 'ssh')
    await once(other, 'data')
    const [socket] = sockets
    assert.ok(socket)
    other.end()
    await once(socket, 'close')
  })

  it('tunnels of an agent transfer large amounts completely', async () => {
    const source = net.createServer((socket) => void socket.end(Buffer.alloc(8 * 1024 * 1024, 7)))
    await once(source.listen(0, '127.0.0.1'), 'listening')
    const { port } = source.address() as net.AddressInfo
    await rig.server.fulfilled(rig.server.want({ uid: 'big', ssh: port }))
    let bytes = 0
    for await (const chunk of await rig.server.dial('big', 'ssh')) bytes += (chunk as Buffer).length
    assert.equal(bytes, 8 * 1024 * 1024)
    source.close()
  })

  it('tunnels of an agent are closed if the port does not respond, and for unknown ports and VMs', async () => {
    await rig.server.fulfilled(rig.server.want({ uid: 'b', ssh: 1 }))
    for (const [uid, to] of [
      ['b', 'ssh'],
      ['a', 'vnc'],
      ['missing', 'ssh'],
    ] as const) {
      const tunnel = await rig.server.dial(uid, to)
      await once(tunnel.resume(), 'end')
    }
  })

  it('tunnels of an agent beyond the limit are refused without a connection', async () => {
    let connects = 0
    const { log, lines } = readableLog()
    const connect = (_path: string, signal: AbortSignal) => {
      connects++
      return new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }
    const tunnels = createTunnels({ connect, find: () => undefined, measured: () => '', log })
    for (let index = 0; index < maxTunnels + 10; index++)
      tunnels.open({ type: 'DIAL', tunnel: String(index), uid: 'a', to: 'ssh' })
    await new Promise(setImmediate)
    assert.deepEqual([connects, tunnels.count, lines.length], [maxTunnels, maxTunnels, 10])
    assert.match(lines[0]?.problem ?? '', /^256 connections are already open/)
    await tunnels.stop()
  })

  it("tunnels of an agent send the end of the console's log, and new lines", async () => {
    const file = `${rig.vmFolder('a')}/console.log`
    await fs.writeFile(file, 'one\ntwo\nthree\n')
    let text = ''
    for await (const chunk of await rig.server.dial('a', 'log', { tail: 2 })) text += chunk
    assert.equal(text, 'two\nthree\n')

    const tunnel = await rig.server.dial('a', 'log', { tail: 1, follow: true })
    assert.equal(String(await once(tunnel, 'data')), 'three\n')
    // The data may arrive before the write resolves.
    const [more] = await Promise.all([once(tunnel, 'data'), fs.appendFile(file, 'four\n')])
    assert.equal(String(more), 'four\n')
    tunnel.destroy()
  })
})
