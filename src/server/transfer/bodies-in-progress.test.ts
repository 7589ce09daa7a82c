// Many large bodies that one caller sends at once.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { it } from 'node:test'
import { startService } from '../../../test/support/rigs/service.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

it('a caller may have 32 MiB of bodies in progress, others have their own, and what ended does not count', async () => {
  await using service = await startService()
  const port = Number(new URL(await service.listen()).port)
  const begin = (headers: readonly string[], start = '{') => {
    const socket = net.connect(port, '127.0.0.1')
    socket.write(['POST /api/v1/namespaces/svc-default/vms HTTP/1.1', 'Host: x', ...headers, '', start].join('\r\n'))
    const begun = { socket, status: '' }
    socket
      .on('error', () => undefined)
      .on('data', (piece) => {
        begun.status ||= piece.toString().slice(9, 12)
      })
    return begun
  }
  const of = (token: string): string => `Authorization: Bearer ${token}`
  const length = 'Content-Length: 1048576'
  const first = Array.from({ length: 28 }, () => begin([of(service.adminToken), length]))
  await Promise.all(first.map(({ socket }) => once(socket, 'connect')))
  // Those without a length count like the largest.
  const more = Array.from({ length: 20 }, () =>
    begin([of(service.adminToken), 'Transfer-Encoding: chunked'], '1\r\n{\r\n'),
  )
  const refused = () => [...first, ...more].filter(({ status }) => status === '429')
  await eventually(() => assert.equal(refused().length, 16))
  const other = await service.call('POST', '/api/v1/namespaces/svc-default/vms', { token: service.devToken, body: {} })
  assert.equal(other.status, 400)
  const anonymous = begin([length])
  await eventually(() => assert.equal(anonymous.status, '401'))
  for (const { socket } of [...first, ...more, anonymous]) socket.destroy()
  await eventually(async () => {
    const again = await service.call('POST', '/api/v1/namespaces/svc-default/vms', {
      body: { name: 'x'.repeat(900_000) },
    })
    assert.equal(again.status, 422)
  })
})
