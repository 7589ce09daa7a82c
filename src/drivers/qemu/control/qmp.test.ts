// Servers that violate QMP: the connection ends, the process does not.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { Control } from './control.ts'
import { connectQmp, InvalidQmp } from './qmp.ts'

async function pretend(answer: (command: string) => string) {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-qmp-'))
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket.on('error', () => undefined))
    socket.write('{"QMP": {}}\r\n')
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.trim().split('\n')) {
        const { execute, id } = JSON.parse(line)
        socket.write(execute === 'qmp_capabilities' ? `${JSON.stringify({ return: {}, id })}\n` : answer(execute))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(path.join(folder, 'qmp'), resolve))
  return {
    folder,
    socket: path.join(folder, 'qmp'),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      await fs.rm(folder, { recursive: true })
    },
  }
}

describe('QMP', () => {
  for (const [what, answer] of Object.entries({
    'invalid JSON': 'this is not JSON\n',
    'a value that is not an object': 'null\n',
    'a line that is too long': 'x'.repeat(2_000_000),
  }))
    it(`QMP ends the connection after ${what}, with an error`, async () => {
      await using server = await pretend(() => answer)
      const qmp = await connectQmp(server.socket, 120_000)
      await assert.rejects(qmp.execute('query-status'), InvalidQmp)
      await qmp.closed
      await assert.rejects(qmp.execute('query-status'), InvalidQmp)
    })

  it('a VM with invalid QMP is reported as one that cannot be controlled', async () => {
    await using server = await pretend(() => '{{{\n')
    const control = new Control({ changed: () => undefined, poweredOff: () => undefined, lost: () => undefined })
    const observed = await control.observe(server.folder)
    assert.equal(observed?.state, 'failed')
    assert.match(observed?.state === 'failed' ? observed.problem : '', /cannot be controlled: .*not QMP/)
    control.close()
  })
})
