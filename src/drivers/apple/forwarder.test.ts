// The ports of a VM: both directions, ports in use, guests that come late or move, and screens, whose password clients
// need not know.
import assert from 'node:assert/strict'
import { createDecipheriv, randomBytes } from 'node:crypto'
import dgram from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as nextTurn } from 'node:timers/promises'
import { freePort } from '../../../test/support/tools/free-port.ts'
import { PortTaken } from '../driver.ts'
import { createForwarder, type ForwardedGuest } from './forwarder.ts'
import { answerTo } from './screen.ts'

const ip = '127.0.0.1'
const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

async function serve(address: string, handle: (socket: net.Socket) => void): Promise<number> {
  const server = net.createServer({ allowHalfOpen: true }, handle).listen(0, address)
  await once(server, 'listening')
  cleanUp.push(() => server.close())
  return (server.address() as net.AddressInfo).port
}

function open(guest: Partial<ForwardedGuest>) {
  const forwarder = createForwarder({
    address: async () => undefined,
    failed: () => undefined,
    confirm: async () => undefined,
    confirmedAddress: guest.address ?? (async () => undefined),
    screen: async () => undefined,
    ...guest,
  })
  cleanUp.push(() => forwarder.close())
  return forwarder
}

/** Everything received in response, up to the end. */
async function exchange(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = net.connect(port, ip)
  const got: Buffer[] = []
  socket.on('data', (piece) => got.push(piece))
  socket.end(bytes)
  await once(socket, 'close')
  return Buffer.concat(got)
}

describe('ports of a VM on Apple silicon', () => {
  it('the ports of a VM on Apple silicon forward everything, also after one side has finished sending', async () => {
    const guestPort = await serve('127.0.0.9', (socket) => {
      const all: Buffer[] = []
      socket.on('data', (piece) => all.push(piece))
      socket.on('end', () => socket.end(Buffer.concat(all).reverse()))
    })
    const hostPort = await freePort()
    await open({ address: async () => '127.0.0.9' }).open({
      ip,
      forwards: [{ protocol: 'tcp', hostPort, guestPort }],
    })
    const bytes = randomBytes(3_000_000)
    assert.ok((await exchange(hostPort, bytes)).equals(Buffer.from(bytes).reverse()))
  })

  it('the ports of a VM on Apple silicon are open before the guest has an address, and follow a change of it', async () => {
    const hostPort = await freePort()
    const guestPort = await serve('127.0.0.9', (socket) => socket.end('there'))
    let address: string | undefined
    const forwarder = open({ address: async () => address })
    await forwarder.open({ ip, forwards: [{ protocol: 'tcp', hostPort, guestPort }] })
    await assert.rejects(exchange(hostPort, Buffer.alloc(0)), { code: 'ECONNRESET' })
    address = '127.0.0.9'
    assert.equal((await exchange(hostPort, Buffer.alloc(0))).toString(), 'there')
  })

  it('the ports of a VM on Apple silicon tell how connections to the guest ended, and refusals of the SSH port only', async () => {
    const told: unknown[] = []
    const guest = {
      address: async () => '127.0.0.9',
      confirm: async () => void told.push('confirmed'),
      failed: (address: string, { code }: NodeJS.ErrnoException) => void told.push([address, code]),
    }
    const there = await serve('127.0.0.9', (socket) => socket.end('there'))
    for (const guestPort of [there, await freePort(), 22]) {
      const hostPort = await freePort()
      const forwarder = open(guest)
      await forwarder.open({ ip, forwards: [{ protocol: 'tcp', hostPort, guestPort }] })
      await exchange(hostPort, Buffer.alloc(0)).catch(() => undefined)
    }
    assert.deepEqual(told, ['confirmed', ['127.0.0.9', 'ECONNREFUSED']])
  })

  it('the ports of a VM on Apple silicon end a connection that the guest breaks off before it is confirmed', async () => {
    let guestSocket: net.Socket | undefined
    const guestPort = await serve('127.0.0.9', (socket) => {
      guestSocket = socket
      socket.on('error', () => undefined)
    })
    const hostPort = await freePort()
    const confirm = async () => {
      while (!guestSocket) await nextTurn()
      guestSocket.resetAndDestroy()
      // Until this process has received the reset.
      await nextTurn(200)
    }
    const guest = { address: async () => '127.0.0.9', confirm }
    await open(guest).open({ ip, forwards: [{ protocol: 'tcp', hostPort, guestPort }] })
    const client = net.connect(hostPort, ip)
    cleanUp.push(() => client.destroy())
    await assert.rejects(once(client, 'close', { signal: AbortSignal.timeout(10_000) }), { code: 'ECONNRESET' })
  })

  it('the ports of a VM on Apple silicon forward datagrams, and answers to their sender', async () => {
    const server = dgram.createSocket('udp4').bind(0, '127.0.0.9')
    await once(server, 'listening')
    cleanUp.push(() => server.close())
    server.on('message', (message, from) => server.send(`re: ${message}`, from.port, from.address))
    const hostPort = await freePort()
    const guestPort = server.address().port
    await open({ address: async () => '127.0.0.9' }).open({ ip, forwards: [{ protocol: 'udp', hostPort, guestPort }] })
    const clients = [dgram.createSocket('udp4'), dgram.createSocket('udp4')]
    for (const [index, client] of clients.entries()) {
      cleanUp.push(() => client.close())
      client.send(`question ${index}`, hostPort, ip)
      const [answer] = await once(client, 'message')
      assert.equal(String(answer), `re: question ${index}`)
    }
  })

  it('if ports of a VM on Apple silicon are in use, all of them are named and none stays open', async () => {
    const taken = await serve(ip, () => undefined)
    const alsoTaken = await serve(ip, () => undefined)
    const free = await freePort()
    const forwarder = open({})
    const forwards = [taken, free].map((hostPort) => ({ protocol: 'tcp' as const, hostPort, guestPort: 22 }))
    await assert.rejects(forwarder.open({ ip, forwards, screen: alsoTaken }), (error) => {
      assert.ok(error instanceof PortTaken)
      assert.deepEqual(error.ports, [taken, alsoTaken])
      return true
    })
    assert.equal(forwarder.isOpen, false)
    await assert.rejects(forwarder.open({ ip: '192.0.2.1', forwards: [], screen: 0 }), /cannot be opened on/)
    const twice = { protocol: 'tcp' as const, hostPort: free, guestPort: 1 }
    await assert.rejects(forwarder.open({ ip, forwards: [twice, twice] }), /requested twice/)
    await forwarder.open({ ip, forwards: forwards.slice(1) })
    assert.equal(forwarder.isOpen, true)
    const holds = (port: number, address = ip) => forwarder.holds(port, address)
    assert.deepEqual([holds(free), holds(taken), holds(free, '127.0.0.2')], [true, false, false])
    await forwarder.close()
    assert.equal(holds(free), false)
  })

  it('the ports of a VM on Apple silicon forward to the screen without its password', async () => {
    const challenge = randomBytes(16)
    const port = await serve('127.0.0.9', async (socket) => {
      const next = async () => (await once(socket, 'data'))[0] as Buffer
      socket.write('RFB 003.008\n')
      assert.equal(String(await next()), 'RFB 003.008\n')
      socket.write(Buffer.from([2, 30, 2]))
      assert.deepEqual([...(await next())], [2])
      socket.write(challenge)
      const isRight = (await next()).equals(answerTo(challenge, 'open-sesame'))
      socket.write(Buffer.from([0, 0, 0, isRight ? 0 : 1]))
      if (isRight) socket.end(Buffer.concat([Buffer.from('screen after '), await next()]))
    })
    const screen = await freePort()
    let password = 'open-sesame'
    await open({ screen: async () => `vnc://:${password}@127.0.0.9:${port}` }).open({ ip, forwards: [], screen })
    const client = net.connect(screen, ip)
    const next = async () => (await once(client, 'data'))[0] as Buffer
    assert.equal(String(await next()), 'RFB 003.008\n')
    client.write('RFB 003.008\n')
    assert.deepEqual([...(await next())], [1, 1])
    client.write(Buffer.from([1]))
    assert.deepEqual([...(await next())], [0, 0, 0, 0])
    client.write('hello')
    assert.equal(String(await next()), 'screen after hello')
    client.destroy()
    password = 'wrong'
    await assert.rejects(exchange(screen, Buffer.alloc(0)), { code: 'ECONNRESET' })
  })

  it('the forwarder answers a challenge of the screen as RFB requires', () => {
    // A DES key is the password with the bits of each byte reversed: 'password' is 0e86ceceeef64e26.
    const key = Buffer.from('0e86ceceeef64e26', 'hex')
    const answer = answerTo(Buffer.from('0123456789abcdef'), 'password is cut after eight')
    const decipher = createDecipheriv('des-ede3-ecb', Buffer.concat([key, key, key]), null).setAutoPadding(false)
    assert.equal(
      Buffer.concat([decipher.update(answerTo(Buffer.from('0123456789abcdef'), 'password'))]).toString(),
      '0123456789abcdef',
    )
    assert.ok(answer.equals(answerTo(Buffer.from('0123456789abcdef'), 'password')))
  })
})
