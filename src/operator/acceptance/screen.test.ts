// The RFB client of an acceptance run, on a small server of RFB.
import assert from 'node:assert/strict'
import net from 'node:net'
import { describe, it } from 'node:test'
import { pressKeys } from './screen.ts'

const hex = (size: number): string => size.toString(16).padStart(2, '0')
const width = 3
const height = 2

interface Behaviour {
  /** The picture changes when a key is pressed. */
  readonly reacts: boolean
}

/** Sends the picture in two rectangles, after a message that is not about it. */
async function serveScreen({ reacts }: Behaviour): Promise<net.Server> {
  const server = net.createServer((client) => {
    let pixel = 7
    let isWaiting = false
    let received = Buffer.alloc(0)
    const about = Buffer.from(`00${hex(width)}00${hex(height)}20180001${'00ff'.repeat(3)}1008000000000000000141`, 'hex')
    const rows = [
      { bytes: 12, answer: () => Buffer.from([1, 1]) },
      { bytes: 1, answer: () => Buffer.alloc(4) },
      { bytes: 1, answer: () => about },
      { bytes: 8, answer: () => Buffer.alloc(0) },
    ]
    const update = (): Buffer => {
      const rectangle = (y: number) =>
        Buffer.concat([Buffer.from([0, 0, 0, y, 0, width, 0, 1, 0, 0, 0, 0]), Buffer.alloc(width * 4, pixel)])
      const bell = Buffer.from([2])
      return Buffer.concat([
        bell,
        Buffer.from([0, 0, 0, height]),
        ...Array.from({ length: height }, (_, y) => rectangle(y)),
      ])
    }
    client.write('RFB 003.008\n')
    client.on('error', () => undefined)
    client.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      for (;;) {
        const [row] = rows
        const bytes = row?.bytes ?? (received[0] === 3 ? 10 : 8)
        if (received.length < bytes) return
        const message = received.subarray(0, bytes)
        received = received.subarray(bytes)
        if (row) {
          rows.shift()
          client.write(row.answer())
        } else if (message[0] === 3 && message[1] === 0) client.write(update())
        else if (message[0] === 3) isWaiting = true
        else if (reacts) pixel = 9
        if (isWaiting && pixel === 9) setImmediate(() => client.write(update()))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

const portOf = (server: net.Server): number => (server.address() as net.AddressInfo).port

describe('the screen in an acceptance run', () => {
  it('the screen in an acceptance run passes when the picture changes after a key', async () => {
    await using server = await serveScreen({ reacts: true })
    const text = await pressKeys('127.0.0.1', portOf(server), AbortSignal.timeout(10_000))
    assert.equal(text, '3x2; it changed after a key')
  })

  it('the screen in an acceptance run fails when a key changes nothing', async () => {
    await using server = await serveScreen({ reacts: false })
    await assert.rejects(pressKeys('127.0.0.1', portOf(server), AbortSignal.timeout(300)))
  })

  it('the screen in an acceptance run fails when nothing listens', async () => {
    const server = await serveScreen({ reacts: true })
    const port = portOf(server)
    await new Promise((resolve) => server.close(resolve))
    await assert.rejects(pressKeys('127.0.0.1', port, AbortSignal.timeout(10_000)), /ECONNREFUSED/)
  })
})
