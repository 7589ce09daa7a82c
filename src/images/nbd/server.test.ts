// A disk on a socket: answered in any order, and no more of it in memory than a few answers, whatever the reader does.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { nbdOpening, nbdRead } from '../../../test/support/tools/nbd-client.ts'
import { maxReadBytes } from './protocol.ts'
import { serveDisk } from './server.ts'

const diskBytes = 64 * 2 ** 20

describe('a disk served by NBD', () => {
  it('a disk served by NBD is not read ahead of a reader that takes no answers', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-nbd-'))
    const socket = path.join(folder, 's', 'disk')
    let reads = 0
    const server = await serveDisk(socket, {
      bytes: diskBytes,
      async read(target) {
        reads += 1
        target.fill(0)
      },
    })
    const client = net.connect(socket).pause()
    try {
      const count = 2_000
      client.write(
        Buffer.concat([nbdOpening(), ...Array.from({ length: count }, (_, at) => nbdRead(at, maxReadBytes))]),
      )
      while (reads === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      await new Promise((resolve) => setTimeout(resolve, 200))
      assert.ok(reads <= 18, `${reads} answers of ${maxReadBytes} bytes are in memory`)
      let bytes = 0
      client.on('data', (piece) => {
        bytes += piece.length
      })
      client.resume()
      while (reads < 40) await once(client, 'data')
      assert.ok(bytes >= 20 * maxReadBytes)
    } finally {
      client.destroy()
      await server.stop()
      await fs.rm(folder, { recursive: true })
    }
  })

  it('a disk served by NBD answers in any order, each read with its own bytes', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-nbd-'))
    const socket = path.join(folder, 's', 'disk')
    const server = await serveDisk(socket, {
      bytes: diskBytes,
      async read(target, offset) {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
        target.fill(offset)
      },
    })
    const client = net.connect(socket)
    try {
      const lengths = Array.from({ length: 200 }, (_, at) => (at % 5 === 0 ? 300_000 : 1 + ((at * 7_919) % 200_000)))
      client.write(Buffer.concat([nbdOpening(), ...lengths.map((length, at) => nbdRead(at, length, at))]))
      const replyMagic = Buffer.from([0x67, 0x44, 0x66, 0x98])
      const seen = new Set<number>()
      let rest = Buffer.alloc(0)
      for await (const piece of client as AsyncIterable<Buffer>) {
        rest = Buffer.concat([rest, piece])
        // What is said before the first answer.
        if (seen.size === 0) rest = rest.subarray(Math.max(0, rest.indexOf(replyMagic)))
        for (; rest.subarray(0, 4).equals(replyMagic) && rest.length >= 16; ) {
          const cookie = Number(rest.readBigUInt64BE(8))
          const end = 16 + (lengths[cookie] ?? 0)
          if (rest.length < end) break
          const bytes = rest.subarray(16, end)
          assert.ok(bytes.equals(Buffer.alloc(bytes.length, cookie)), `the answer to read ${cookie}`)
          seen.add(cookie)
          rest = rest.subarray(end)
        }
        if (seen.size === lengths.length) break
      }
      assert.equal(seen.size, lengths.length)
    } finally {
      client.destroy()
      await server.stop()
      await fs.rm(folder, { recursive: true })
    }
  })
})
