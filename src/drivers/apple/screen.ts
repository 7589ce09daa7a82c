// Connects a client to the screen that tart serves with a new password at every start. svc3 sends the password; clients need
// none, as with QEMU's screens. tart prints an address of loopback, but the framework very probably listens on all
// interfaces, and RFB uses 8 letters of the password (17 bits): a pf rule of `svc3 agent install` closes it to others.
import { createCipheriv } from 'node:crypto'
import type net from 'node:net'

const version = 'RFB 003.008\n'
const versionForm = /^RFB (\d{3})\.(\d{3})\n$/
const security = { none: 1, password: 2 } as const

/** Does both handshakes; the caller then joins the sockets. */
export async function joinScreen(client: net.Socket, server: net.Socket, password: string): Promise<void> {
  await enterScreen(server, password)
  await welcome(client)
}

/** Does the handshake of a client, up to where it says whether others may stay connected. */
export async function enterScreen(server: net.Socket, password: string): Promise<void> {
  const said = (await take(server, 12)).toString('latin1')
  if (!versionForm.test(said)) throw new Error('the screen does not speak RFB')
  server.write(version)
  const [count = 0] = await take(server, 1)
  const kinds = count === 0 ? [] : [...(await take(server, count))]
  if (kinds.includes(security.none)) server.write(Buffer.from([security.none]))
  else if (kinds.includes(security.password)) {
    server.write(Buffer.from([security.password]))
    server.write(answerTo(await take(server, 16), password))
  } else throw new Error('the screen requires an unknown kind of login')
  if ((await take(server, 4)).readUInt32BE() !== 0) throw new Error('the screen refuses its password')
}

/** Does the handshake of a server without a password, in the version of the client. */
async function welcome(client: net.Socket): Promise<void> {
  client.write(version)
  const [, , minor = ''] = versionForm.exec((await take(client, 12)).toString('latin1')) ?? []
  if (minor === '') throw new Error('the client of the screen does not speak RFB')
  if (Number(minor) < 7) {
    client.write(Buffer.from([0, 0, 0, security.none]))
    return
  }
  client.write(Buffer.from([1, security.none]))
  const [chosen] = await take(client, 1)
  if (chosen !== security.none) throw new Error('the client of the screen requires a password')
  if (Number(minor) >= 8) client.write(Buffer.alloc(4))
}

/** RFB uses DES with the bits of each byte of the key reversed. Triple DES with one key three times is DES. */
export function answerTo(challenge: Buffer, password: string): Buffer {
  const key = Buffer.alloc(8)
  Buffer.from(password, 'latin1').copy(key)
  for (const [at, byte] of key.entries()) key[at] = reversed(byte)
  const cipher = createCipheriv('des-ede3-ecb', Buffer.concat([key, key, key]), null).setAutoPadding(false)
  return Buffer.concat([cipher.update(challenge), cipher.final()])
}

function reversed(byte: number): number {
  let result = 0
  for (let bit = 0; bit < 8; bit += 1) if (byte & (1 << bit)) result |= 0x80 >> bit
  return result
}

/** Reads exactly `bytes`. The socket is paused afterwards, with the rest still in it. */
export function take(socket: net.Socket, bytes: number): Promise<Buffer> {
  if (bytes === 0) return Promise.resolve(Buffer.alloc(0))
  return new Promise((resolve, reject) => {
    const settle = (done: () => void) => {
      socket.off('readable', look).off('end', failed).off('close', failed)
      done()
    }
    const look = () => {
      const got = socket.read(bytes) as Buffer | null
      if (got?.length === bytes) settle(() => resolve(got))
      else if (got) failed()
    }
    const failed = () => settle(() => reject(new Error('the connection to the screen ended')))
    if (socket.destroyed) return failed()
    socket.on('readable', look).on('end', failed).on('close', failed)
    look()
  })
}
