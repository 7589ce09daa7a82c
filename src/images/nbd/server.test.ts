// A disk on a socket: answered in any order, and no more of it in memory than a few answers, whatever the reader does.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { nbdOpening, nbdRead } from '../../../test/support/tools/nbd-client.ts'
import { mostReadBytes } from './protocol.ts'
import { serveDisk } from './server.ts'

const diskBytes = 64 * 2 ** 20

describe('a disk served by NBD', () => {
  it('a disk served by NBD is not read ahead of a reader that takes no answers', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-nbd-'))
    const socket = path.join(folder, 's', 'disk')
    let reads = 0
    const server = await serveDisk(socket, {
      bytes: diskBytes,
      async read(_, length) {
        reads += 1
        return Buffer.alloc(length)
      },
    })
    const client = net.connect(socket).pause()
    try {
      const count = 2_000
      client.write(
        Buffer.concat([nbdOpening(), ...Array.from({ length: count }, (_, at) => nbdRead(at, mostReadBytes))]),
      )
      while (reads === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      await new Promise((resolve) => setTimeout(resolve, 200))
      assert.ok(reads <= 18, `${reads} answers of ${mostReadBytes} bytes are in memory`)
      let bytes = 0
      client.on('data', (piece) => {
        bytes += piece.length
      })
      client.resume()
      while (reads < 40) await once(client, 'data')
      assert.ok(bytes >= 20 * mostReadBytes)
    } finally {
      client.destroy()
      await server.stop()
      await fs.rm(folder, { recursive: true })
    }
  })
})
