// A VM counts as booted once its SSH server responds. It is polled until then.
import assert from 'node:assert/strict'
import net from 'node:net'
import { it } from 'node:test'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { BootWatch, probeSsh } from './boot-watch.ts'

const place = { ip: '127.0.0.1', port: 22 }
const quick = { firstDelayMs: 1, maxDelayMs: 4, limitMs: 60_000, laterDelayMs: 5 }

it('a VM has booted once its SSH server responds, which is reported once and not polled again', async () => {
  let asked = 0
  let told = 0
  const watch = new BootWatch(async () => ++asked >= 3, () => told++, quick) // biome-ignore format: one line
  watch.follow(place)
  assert.equal(watch.booted, undefined)
  await eventually(async () => assert.equal(watch.booted, true))
  watch.follow({ ...place })
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual([asked, told, watch.booted], [3, 1, true])
})

it('a VM that does not boot is reported once after the limit, and again when it has booted', async () => {
  let isUp = false
  const told: unknown[] = []
  const watch = new BootWatch(async () => isUp, () => told.push(watch.booted), { ...quick, limitMs: 10 }) // biome-ignore format: one line
  watch.follow(place)
  await eventually(async () => assert.deepEqual(told, [false]))
  isUp = true
  await eventually(async () => assert.deepEqual(told, [false, true]))
})

it('a VM that stops is no longer polled, and does not count as booted', async () => {
  let asked = 0
  const watch = new BootWatch(async () => ++asked < 0, () => assert.fail('told'), quick) // biome-ignore format: one line
  watch.follow(place)
  await eventually(async () => assert.ok(asked > 1))
  watch.follow(undefined)
  const had = asked
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.ok(asked <= had + 1)
  assert.equal(watch.booted, undefined)
})

it('an SSH greeting is recognized by its first line', async () => {
  const lines = ['SSH-2.0-test\r\n', 'HTTP/1.1 400\r\n']
  const server = net.createServer((socket) => socket.on('error', () => undefined).end(lines.shift() ?? ''))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  const ask = () => probeSsh({ ip: '127.0.0.1', port }, AbortSignal.timeout(10_000))
  assert.deepEqual([await ask(), await ask(), await ask()], [true, false, false])
  await new Promise((resolve) => server.close(resolve))
  assert.equal(await ask(), false)
})
