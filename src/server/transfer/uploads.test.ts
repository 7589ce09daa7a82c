// Uploads over real connections: when the body is requested, timeouts, and interruptions.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { parseRange } from './downloads.ts'

const images = '/api/v1/namespaces/svc-default/images'
const path = '/api/v1/namespaces/svc-default/upload/image'
let service: TestService
let port: number
before(async () => {
  service = await startService({ settings: { limits: { requestSeconds: 1, uploadSilenceSeconds: 3 } } })
  port = Number(new URL(await service.listen()).port)
  await service.call('POST', images, { body: { name: 'taken', size: '1G' } })
})
after(() => service[Symbol.asyncDispose]())

const leftovers = (): Promise<string[]> => fs.readdir(service.services.uploads.folder)
const records = (): string[] => service.services.collections.images.list().map(({ value }) => value.name)

/** A connection for raw bytes. `text` is everything that was received. */
async function connect(name: string, headers: readonly string[], target = path) {
  const socket = net.connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => undefined)
  const closed = once(socket, 'close')
  await once(socket, 'connect')
  const first = [`POST ${target}?name=${name} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${service.adminToken}`]
  socket.write([...first, ...headers, '', ''].join('\r\n'))
  return { socket, closed, text: () => text }
}

describe('an upload', () => {
  it('an upload gets 100 Continue only if it will be accepted', async () => {
    const refused = await connect('taken', ['Content-Length: 1000000000', 'Expect: 100-continue'])
    await refused.closed
    assert.match(refused.text(), /^HTTP\/1\.1 409 /)
    assert.doesNotMatch(refused.text(), /100 Continue/)

    const wanted = await connect('wanted', ['Content-Length: 512', 'Expect: 100-continue', 'Connection: close'])
    await eventually(async () => assert.match(wanted.text(), /^HTTP\/1\.1 100 Continue/))
    wanted.socket.write(Buffer.alloc(512))
    await wanted.closed
    assert.match(wanted.text(), /HTTP\/1\.1 201 /)
  })

  it('an upload that is larger than any disk, or than the disk of the server, gets no 100 Continue', async () => {
    for (const bytes of [2 ** 47, 2 ** 45]) {
      const { closed, text } = await connect('huge', [`Content-Length: ${bytes}`, 'Expect: 100-continue'])
      await closed
      assert.match(text(), /^HTTP\/1\.1 413 [\s\S]*RequestEntityTooLarge/)
    }
  })

  it('an upload may take longer than other requests as long as bytes arrive', async () => {
    const { socket, closed, text } = await connect('slow', ['Content-Length: 512', 'Connection: close'])
    for (let part = 0; part < 8; part++) {
      socket.write(Buffer.alloc(64))
      await sleep(250)
    }
    await closed
    assert.match(text(), /^HTTP\/1\.1 201 /)
  })

  it('an upload that stalls is ended, and leaves nothing behind', async () => {
    const { socket, closed, text } = await connect('silent', ['Content-Length: 1000'])
    socket.write('and then')
    await closed
    assert.match(text(), /^HTTP\/1\.1 408 /)
    await eventually(async () => assert.deepEqual(await leftovers(), []))
    assert.ok(!records().includes('silent'))
  })

  const file = 'content-disposition: form-data; name="image"; filename="disk.img"'
  const badForms: readonly (readonly [what: string, type: string, body: string])[] = [
    ['without a boundary', 'multipart/form-data', 'x'],
    ['with an empty boundary', 'multipart/form-data; boundary=', 'x'],
    ['with a boundary of 5,000 characters', `multipart/form-data; boundary=${'b'.repeat(5_000)}`, 'x'],
    ['that is cut in its first header', 'multipart/form-data; boundary=b', '--b\r\ncontent-dis'],
    ['that is cut in its file', 'multipart/form-data; boundary=b', `--b\r\n${file}\r\n\r\nabc`],
    ['that is cut before its end', 'multipart/form-data; boundary=b', `--b\r\n${file}\r\n\r\nabc\r\n--b`],
    ['with a header that never ends', 'multipart/form-data; boundary=b', `--b\r\n${'a'.repeat(100_000)}`],
    ['of nothing', 'multipart/form-data; boundary=b', ''],
  ]
  for (const [what, type, body] of badForms)
    for (const kind of ['image', 'iso'])
      it(`an upload of an ${kind} as a form ${what} is refused with 400, and leaves nothing behind`, async () => {
        const url = `/api/v1/namespaces/svc-default/upload/${kind}?name=form`
        const headers = { 'content-type': type, authorization: `Bearer ${service.adminToken}` }
        const answer = await fetch(`http://127.0.0.1:${port}${url}`, { method: 'POST', headers, body })
        assert.equal(answer.status, 400, await answer.text())
        assert.deepEqual(await leftovers(), [])
        assert.ok(!records().includes('form'))
      })

  it('an interrupted upload leaves nothing behind', async () => {
    const { socket } = await connect('cut', ['Content-Length: 10000000'])
    socket.write(randomBytes(3_000_000))
    await eventually(async () => assert.equal((await leftovers()).length, 1))
    socket.resetAndDestroy()
    await eventually(async () => assert.deepEqual(await leftovers(), []))
    assert.ok(!records().includes('cut'))
  })

  it('an upload whose client disconnects before it is stored leaves nothing behind', async () => {
    const zeros = gzipSync(Buffer.alloc(64 * 2 ** 20), { level: 1 })
    const bytes = Buffer.concat(new Array(200).fill(zeros))
    const { socket } = await connect('left', [`Content-Length: ${bytes.length}`])
    socket.write(bytes)
    await eventually(() => assert.ok(records().includes('left')))
    socket.resetAndDestroy()
    await eventually(() => assert.ok(!records().includes('left')), 10_000)
    await eventually(async () => assert.deepEqual(await leftovers(), []))
  })

  it('an upload without Expect gets its refusal as well', async () => {
    const request = http.request({ port, path: `${path}?name=taken`, method: 'POST', headers: { authorization: `Bearer ${service.adminToken}`, 'content-length': 20_000_000 } }) // biome-ignore format: one request
    request.on('error', () => undefined)
    request.write(randomBytes(5_000_000))
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
    assert.equal(answer.statusCode, 409)
    request.end(randomBytes(15_000_000))
    answer.resume()
    await once(answer, 'end')
  })
})

describe('other requests', () => {
  it('other requests have a total timeout', async () => {
    const { socket, closed, text } = await connect('x', ['Content-Length: 8'], images)
    const drip = setInterval(() => socket.write('a'), 300)
    await closed
    clearInterval(drip)
    assert.match(text(), /^HTTP\/1\.1 408 /)
  })

  it('other requests with Expect get 100 Continue', async () => {
    const { socket, text } = await connect('x', ['Content-Length: 2', 'Expect: 100-continue'], images)
    await eventually(async () => assert.match(text(), /100 Continue/))
    socket.destroy()
  })
})

describe('a range', () => {
  const rows: readonly [header: string | undefined, expected: ReturnType<typeof parseRange>][] = [
    [undefined, undefined],
    ['bytes=0-9', { start: 0, end: 10 }],
    ['bytes=90-200', { start: 90, end: 100 }],
    ['bytes=-5', { start: 95, end: 100 }],
    ['bytes=-500', { start: 0, end: 100 }],
    ['bytes=99-', { start: 99, end: 100 }],
    ['bytes=100-', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=5-3', undefined],
    ['bytes=0-1,3-4', undefined],
    ['bytes=a-b', undefined],
    ['bytes=99999999999999999999-', undefined],
  ]
  for (const [header, expected] of rows)
    it(`a range: ${header} of 100 bytes`, () => assert.deepEqual(parseRange(header, 100), expected))
})
