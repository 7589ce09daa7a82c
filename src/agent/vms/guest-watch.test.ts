// A guest is reached once its SSH server responds. It is polled until then, and again after a connection failed.
import assert from 'node:assert/strict'
import net from 'node:net'
import { it } from 'node:test'
import { eventually } from '../../../test/support/tools/eventually.ts'
import type { GuestReach } from '../../api/vms/guest-reach.ts'
import { GuestWatch, probeSsh } from './guest-watch.ts'

const place = { ip: '127.0.0.1', port: 22 }
const quick = { firstDelayMs: 1, maxDelayMs: 4, settleMs: 60_000, limitMs: 60_000, laterDelayMs: 5 }
const ok = { ok: true } as GuestReach
const noAddress = { reason: 'NoAddress', message: 'no lease' } as const
const refused = { reason: 'Refused', message: 'refused' } as const

it('a guest has booted and is reachable once its SSH server responds, which is reported once and not polled again', async () => {
  let asked = 0
  let told = 0
  const watch = new GuestWatch(async () => (++asked >= 3 ? ok : noAddress), () => told++, quick) // biome-ignore format: one line
  watch.follow(place)
  assert.deepEqual([watch.booted, watch.reach], [undefined, undefined])
  await eventually(async () => assert.deepEqual([watch.booted, watch.reach], [true, ok]))
  watch.follow({ ...place })
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual([asked, told, watch.booted], [3, 1, true])
})

it('a guest that does not boot is reported once after the limit, and again when it has booted', async () => {
  let reach = noAddress as GuestReach
  const told: unknown[] = []
  const watch = new GuestWatch(async () => reach, () => told.push(watch.booted), { ...quick, limitMs: 10 }) // biome-ignore format: one line
  watch.follow(place)
  await eventually(async () => assert.deepEqual(told, [false]))
  reach = ok
  await eventually(async () => assert.deepEqual(told, [false, true]))
})

it('a guest that is not reached in time is reported with the cause, each cause once as new, then with what changed', async () => {
  let reach = noAddress as GuestReach
  const told: unknown[] = []
  const watch = new GuestWatch(async () => reach, (first) => told.push([watch.reach, first]), { ...quick, settleMs: 5 }) // biome-ignore format: one line
  watch.follow(place)
  const steps: [GuestReach, GuestReach | undefined][] = [
    [noAddress, noAddress],
    [refused, refused],
    [noAddress, undefined],
    [{ ...noAddress, message: 'another error' }, undefined],
    [ok, undefined],
  ]
  for (const [count, [next]] of steps.entries()) {
    reach = next
    await eventually(async () => assert.equal(told.length, count + 1))
  }
  assert.deepEqual(told, steps)
  assert.equal(watch.booted, true)
})

it('causes that do not end by waiting are reported while the guest boots, others are not', async () => {
  const blocked = { reason: 'BlockedByLocalNetwork', message: 'EHOSTUNREACH' } as const
  const answers: GuestReach[] = [noAddress, refused, blocked]
  const told: unknown[] = []
  const watch = new GuestWatch(async () => answers.shift() ?? blocked, (first) => told.push(first), quick) // biome-ignore format: one line
  watch.follow(place)
  await eventually(async () => assert.deepEqual(told, [blocked]))
  assert.deepEqual([watch.booted, watch.reach], [undefined, blocked])
  watch.follow(undefined)
})

it('a failed connection makes a reachable guest be polled again, until it is reached', async () => {
  let asked = 0
  let reach = ok as GuestReach
  const told: unknown[] = []
  const watch = new GuestWatch(async () => (++asked > 0 ? reach : ok), () => told.push(watch.reach), quick) // biome-ignore format: one line
  watch.recheck()
  watch.follow(place)
  await eventually(async () => assert.deepEqual(told, [ok]))
  watch.recheck()
  await eventually(async () => assert.equal(asked, 2))
  reach = refused
  watch.recheck()
  watch.recheck()
  await eventually(async () => assert.deepEqual(told, [ok, refused]))
  assert.equal(watch.booted, true, 'it had booted')
  reach = ok
  await eventually(async () => assert.deepEqual(told, [ok, refused, ok]))
  const had = asked
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(asked, had)
})

it('a VM that stops is no longer polled, and counts neither as booted nor as reachable', async () => {
  let asked = 0
  const watch = new GuestWatch(async () => (++asked > 0 ? noAddress : ok), () => undefined, { ...quick, settleMs: 0 }) // biome-ignore format: one line
  watch.follow(place)
  await eventually(async () => assert.ok(asked > 1))
  watch.follow(undefined)
  const had = asked
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.ok(asked <= had + 1)
  assert.deepEqual([watch.booted, watch.reach], [undefined, undefined])
})

it('a probe tells an SSH greeting from another protocol, a closed connection, and a port that is not forwarded', async () => {
  const lines = ['SSH-2.0-test\r\n', 'HTTP/1.1 400\r\n', '']
  const server = net.createServer((socket) => socket.on('error', () => undefined).end(lines.shift() ?? ''))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  const ask = async () => {
    const reach = await probeSsh({ ip: '127.0.0.1', port }, AbortSignal.timeout(10_000))
    return 'reason' in reach ? [reach.reason, reach.message] : []
  }
  assert.deepEqual(await ask(), [])
  assert.deepEqual(await ask(), ['NoAnswer', 'what answers on port 22 is not an SSH server'])
  assert.deepEqual(await ask(), ['Refused', 'the connection was closed before an SSH greeting'])
  await new Promise((resolve) => server.close(resolve))
  const [reason, message = ''] = await ask()
  assert.equal(reason, 'NoRoute')
  assert.match(message, /does not forward the SSH port: .*ECONNREFUSED/)
})
