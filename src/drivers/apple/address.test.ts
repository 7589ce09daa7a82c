// A forwarded port never reaches another VM: the address of a guest counts only while the ARP table gives it to this VM.
import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterEach, describe, it } from 'node:test'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { freePort } from '../../../test/support/tools/free-port.ts'
import type { GuestReach } from '../../api/vms/guest-reach.ts'
import { AddressBook } from './address.ts'
import { arpTable } from './arp.ts'
import { createForwarder } from './forwarder.ts'
import type { Tart } from './tart.ts'

const ip = '127.0.0.1'
const guestIp = '127.0.0.9'
const own = '02:0a:00:00:00:01'
const other = '06:00:00:00:00:02'
const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

interface Guest {
  address?: string
  arp: readonly string[]
}

/** A VM with TCP and UDP ports, whose guest counts the bytes that it gets. */
async function arrange(guest: Guest) {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-address-'))
  const place = path.join(folder, 'tart', 'vms', 'a')
  await fs.mkdir(place, { recursive: true })
  await fs.writeFile(path.join(place, 'config.json'), JSON.stringify({ macAddress: own }))
  const command: Tart['command'] = async () => ({ stdout: guest.address ?? '', stderr: '' }) as never
  const told: unknown[] = []
  const unreached = () => void told.push(reasonIn(book.reach))
  const tart: Tart = { program: 'tart', command, inHome: command }
  const book = new AddressBook({ tart, folder, readArp: async () => guest.arp, unreached })
  book.use('a')
  const got: string[] = []
  const server = net.createServer((socket) =>
    socket.on('data', (data) => socket.end(`re: ${got[got.push(`${data}`) - 1]}`)),
  )
  server.listen(0, guestIp)
  await once(server, 'listening')
  const { port: guestPort } = server.address() as net.AddressInfo
  const datagrams = dgram.createSocket('udp4').bind(guestPort, guestIp)
  datagrams.on('message', (message, from) => {
    got.push(`${message}`)
    datagrams.send(`re: ${message}`, from.port, from.address)
  })
  const [tcp, udp, nothing] = [await freePort(), await freePort(), await freePort()]
  const forwarder = createForwarder(book)
  await forwarder.open({
    ip,
    forwards: [
      { protocol: 'tcp', hostPort: tcp, guestPort },
      { protocol: 'udp', hostPort: udp, guestPort },
      { protocol: 'tcp', hostPort: nothing, guestPort: 1 },
    ],
  })
  cleanUp.push(
    () => fs.rm(folder, { recursive: true }),
    () => server.close(),
    () => datagrams.close(),
    () => forwarder.close(),
  )
  return { book, got, told, tcp, udp, nothing }
}

async function say(port: number, text: string): Promise<string> {
  const socket = net.connect(port, ip)
  socket.end(text)
  let answer = ''
  socket.on('data', (data) => {
    answer += data
  })
  await once(socket, 'close')
  return answer
}

const reasonIn = (reach: GuestReach | undefined) => (reach && 'reason' in reach ? reach.reason : reach?.ok)

describe('guest behind a forwarded port', () => {
  it('the guest behind a forwarded port gets nothing while the ARP table names another guest, and connections when it is this one', async () => {
    const guest: Guest = { address: guestIp, arp: [other] }
    const { book, got, told, tcp } = await arrange(guest)
    for (let i = 0; i < 2; i += 1) await assert.rejects(say(tcp, 'password'), { code: 'ECONNRESET' })
    const outcome = book.reach
    assert.ok(outcome && 'reason' in outcome)
    assert.equal(outcome.reason, 'OtherGuest')
    assert.match(outcome.message, /127\.0\.0\.9 belongs to 06:00:00:00:00:02, and this VM is 02:0a:.*Restart the VM/)
    assert.deepEqual(told, ['OtherGuest'], 'once')
    guest.arp = [own, other]
    await assert.rejects(say(tcp, 'password'), { code: 'ECONNRESET' }, 'two guests have one address')
    assert.deepEqual(got, [])
    guest.arp = [own]
    assert.equal(await say(tcp, 'hello'), 're: hello')
    assert.deepEqual(book.reach, { ok: true })
  })

  it('the guest behind a forwarded port gets nothing if the ARP table does not know its address', async () => {
    const { book, got, tcp } = await arrange({ address: guestIp, arp: [] })
    await assert.rejects(say(tcp, 'password'), { code: 'ECONNRESET' })
    assert.equal(reasonIn(book.reach), 'NoRoute')
    assert.deepEqual(got, [])
  })

  it('the guest behind a forwarded port gets datagrams only when it is this one', async () => {
    const guest: Guest = { address: guestIp, arp: [other] }
    const { book, got, udp } = await arrange(guest)
    const client = dgram.createSocket('udp4')
    cleanUp.push(() => client.close())
    client.send('secret', udp, ip)
    await eventually(async () => assert.equal(reasonIn(book.reach), 'OtherGuest'), 30_000)
    guest.arp = [own]
    client.send('hello', udp, ip)
    const [answer] = await once(client, 'message')
    assert.equal(String(answer), 're: hello')
    assert.deepEqual(got, ['hello'])
  })

  it('the guest behind a forwarded port tells why it is not reached: no address yet, or nothing there', async () => {
    const guest: Guest = { arp: [own] }
    const { book, tcp, nothing } = await arrange(guest)
    assert.equal(book.reach, undefined)
    await assert.rejects(say(tcp, 'hello'), { code: 'ECONNRESET' })
    assert.equal(reasonIn(book.reach), 'NoAddress')
    guest.address = guestIp
    await eventually(async () => assert.equal(await book.address(), guestIp), 30_000)
    await assert.rejects(say(nothing, 'hello'), { code: 'ECONNRESET' })
    assert.equal(reasonIn(book.reach), 'NoAddress', 'the refusal of a port other than that of SSH tells nothing')
    book.failed(guestIp, Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
    assert.equal(reasonIn(book.reach), 'Refused')
    book.failed(guestIp, Object.assign(new Error('connect EHOSTUNREACH'), { code: 'EHOSTUNREACH' }))
    assert.equal(reasonIn(book.reach), 'NoRoute')
  })
})

describe('ARP table', () => {
  it('the ARP table is read as macOS prints it, and empty where it fails', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-arp-'))
    const cases: readonly [string, readonly string[]][] = [
      ['echo "? ($2) at 2:a:0:0:0:1 on bridge100 ifscope [bridge]"', [own]],
      [
        'echo "? ($2) at 2:A:0:0:0:1 on en0 [ethernet]"; echo "? ($2) at 6:0:0:0:0:2 on bridge100 [bridge]"',
        [own, other],
      ],
      ['echo "? ($2) at (incomplete) on bridge100 ifscope [bridge]"', []],
      ['echo "$2 ($2) -- no entry"; exit 1', []],
    ]
    for (const [index, [script, owners]] of cases.entries()) {
      const program = path.join(folder, `arp-${index}`)
      await fs.writeFile(program, `#!/bin/sh\n[ "$1" = -n ] || exit 2\n${script}\n`, { mode: 0o755 })
      assert.deepEqual(await arpTable(program)('192.168.64.7'), owners)
    }
    assert.deepEqual(await arpTable('no-such-arp')('192.168.64.7'), [])
    await fs.rm(folder, { recursive: true })
  })
})
