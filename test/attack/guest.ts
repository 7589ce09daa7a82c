// Doors of a guest, and of a QEMU that a guest has broken into: the sockets on which an agent listens to them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { agentSocket, qmpSocket } from '../../src/drivers/qemu/control/sockets.ts'
import { nbdOpening, nbdRead } from '../support/tools/nbd-client.ts'
import type { Attacker } from './attacker.ts'
import { type Acted, type HostTarget, startHost } from './host-target.ts'
import type { Doors } from './suite.ts'

type Manner = (socket: net.Socket) => unknown

/** Writes pieces for as long as the other side reads, some seconds at most. */
function floods(...pieces: readonly (string | Buffer)[]): Manner {
  return async (socket) => {
    const endMs = performance.now() + 4_000
    for (let count = 0; !socket.destroyed && performance.now() < endMs; count++)
      if (!socket.write(pieces[Math.min(count, pieces.length - 1)] ?? ''))
        await Promise.race([once(socket, 'drain').catch(() => undefined), sleep(1_000)])
  }
}

/** One byte in each write, so that the other side may do its work for each. */
const drips =
  (text: string): Manner =>
  async (socket) => {
    const endMs = performance.now() + 4_000
    for (let at = 0; at < text.length && !socket.destroyed && performance.now() < endMs; at++) {
      socket.write(text.charAt(at))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

const says =
  (text: string): Manner =>
  (socket) =>
    socket.write(text, 'latin1')

const deep = (count: number): string => '['.repeat(count) + ']'.repeat(count)

/** What a guest's agent says to the first command. */
const agents: Readonly<Record<string, Manner>> = {
  'a line without end': floods('{"return":[', '"clock",'.repeat(8_000)),
  'answers by the thousand': says('{"return":1}\n'.repeat(80_000)),
  'objects by the thousand': says('{}\n'.repeat(340_000)),
  'one byte at a time': drips(`{"return":["${'x'.repeat(900_000)}`),
  'answers without end': floods('{"return":{"exited":false,"pid":1}}\n'.repeat(1_800)),
  'deeply nested JSON': says(`{"return":${deep(500_000)}}\n`),
  'a deeply nested part of an answer': says(`{"return":[${deep(400_000)},{"toString":1},"clock"]}\n`),
  'a part that cannot become text': says('{"return":[{"toString":1}]}\n'),
  'a large output in base64': says(
    `{"return":{"pid":1,"exited":true,"exitcode":0,"out-data":"${'QUFB'.repeat(250_000)}"}}\n`,
  ),
  'bytes that are no text': floods(Buffer.alloc(65_536, '\xff\x00\n\xff{', 'latin1')),
  nothing: () => undefined,
  'the end': (socket) => socket.destroy(),
}

const greeting = '{"QMP": {}}\r\n{"return":{},"id":1}\r\n'

/** What QEMU says on its control socket. */
const controls: Readonly<Record<string, Manner>> = {
  'a greeting without end': floods('{"QMP": {"version": "', 'x'.repeat(65_536)),
  'a line without end': floods(greeting, '{"return": "', 'x'.repeat(65_536)),
  'events without end': floods(greeting, '{"event":"STOP"}\r\n'.repeat(3_000)),
  'answers to no question': floods(greeting, '{"id":-1,"return":{}}\r\n'.repeat(3_000)),
  'lines as long as they may be': floods(greeting, `{"event":"${'x'.repeat(1_040_000)}"}\n`),
  'deeply nested JSON': floods(greeting, `{"return":${deep(500_000)},"id":2}\n`),
  'one byte at a time': drips(`${greeting}{"return":"${'x'.repeat(900_000)}`),
  'other types': says(
    `${greeting}${[2, 3, 4, 5].map((id) => `{"id":${id},"error":{"desc":{"a":${deep(1_000)}}}}\n`).join('')}`,
  ),
  'empty lines': floods(greeting, '\n'.repeat(65_536)),
  nothing: () => undefined,
}

/** What listens on the SSH port of a guest. */
const greetings: Readonly<Record<string, Manner>> = {
  'a greeting without end': floods('x'.repeat(65_536)),
  'control characters': floods('\x1b]0;x\x07\u009b2J\0\xff\r\n'.repeat(2_000)),
  'one byte at a time': drips('SSH-2.0-'.padEnd(100_000, 'x')),
  nothing: () => undefined,
}

/** Listens for as long as `act` lasts. */
async function listening(manner: Manner, where: string | undefined, act: (server: net.Server) => Promise<void>) {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).resume()
    manner(socket)
  })
  await new Promise<void>((resolve) =>
    where === undefined ? server.listen(0, '127.0.0.1', resolve) : server.listen(where, resolve),
  )
  try {
    await act(server)
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

/** An error of the program itself, not of the other side. */
const isFault = ({ kind = '' }: Acted): boolean => ['TypeError', 'RangeError', 'ReferenceError'].includes(kind)

async function onSocket(
  attacker: Attacker,
  host: HostTarget,
  [where, parts]: readonly [(runtime: string) => string, readonly string[]],
  manner: Manner,
): Promise<void> {
  await Promise.all(
    parts.map(async (part) => {
      const runtime = await fs.mkdtemp(path.join(host.folder, 'r-'))
      await listening(manner, where(runtime), async () => {
        const acted = await host.act(attacker, part, { runtime })
        assert.ok(!isFault(acted), `${part}: ${acted.kind}: ${acted.problem}`)
      })
    }),
  )
}

/** Bytes to the NBD socket of an arriving disk, on each of some connections that read nothing. */
const nbd =
  (connections: number, ...pieces: readonly Buffer[]) =>
  async (attacker: Attacker, host: HostTarget): Promise<void> => {
    const open: net.Socket[] = []
    await attacker.many(connections, connections, async () => {
      const socket = net.connect(host.nbdSocket).pause()
      socket.on('error', () => socket.destroy())
      open.push(socket)
      attacker.sent++
      for (const piece of pieces) if (!(await attacker.write(socket, piece, 1_000))) break
    })
    await sleep(1_000)
    for (const socket of open) socket.destroy()
  }

const head = (kind: number, length: number): Buffer => {
  const bytes = Buffer.alloc(16)
  bytes.writeBigUInt64BE(0x49484156454f5054n, 0)
  bytes.writeUInt32BE(kind, 8)
  bytes.writeUInt32BE(length, 12)
  return bytes
}
const flags = Buffer.from([0, 0, 0, 3])
const longestRead = 2 * 2 ** 20
const many = (bytes: Buffer, count: number): Buffer => Buffer.alloc(bytes.length * count, bytes)

const disks: Readonly<Record<string, (attacker: Attacker, host: HostTarget) => Promise<void>>> = {
  garbage: nbd(50, Buffer.alloc(1_000_000, 'garbage')),
  'options by the thousand': nbd(10, flags, many(head(3, 0), 100_000)),
  'an option of 4 GB': nbd(50, flags, head(7, 0xffff_ffff), Buffer.alloc(1_000_000)),
  'reads that are not allowed': nbd(10, nbdOpening(), many(nbdRead(1, 0xffff_ffff), 50_000)),
  'the longest reads, whose answers are never read': nbd(5, nbdOpening(), many(nbdRead(1, longestRead), 5_000)),
  'tiny reads, whose answers are never read': nbd(20, nbdOpening(), many(nbdRead(1, 1), 50_000)),
}

type Attack = (attacker: Attacker, host: HostTarget) => Promise<void>
type Attacks = Readonly<Record<string, Attack>>

const onSockets = (manners: Readonly<Record<string, Manner>>, ...rest: Parameters<typeof onSocket>[2]): Attacks =>
  Object.fromEntries(
    Object.entries(manners).map(([name, manner]) => [name, (attacker, host) => onSocket(attacker, host, rest, manner)]),
  )

const onPort =
  (manner: Manner): Attack =>
  (attacker, host) =>
    listening(manner, undefined, async (server) => {
      const { port } = server.address() as net.AddressInfo
      const ended = await Promise.all(Array.from({ length: 20 }, () => host.act(attacker, 'ssh', { port })))
      for (const acted of ended) assert.ok(!isFault(acted), acted.problem)
    })

const waiting: Readonly<Record<string, Attacks>> = {
  'guest agent': onSockets(agents, agentSocket, ['flush', 'tell', 'exec']),
  QMP: onSockets(controls, qmpSocket, ['qmp', 'qmp']),
  'SSH port': Object.fromEntries(Object.entries(greetings).map(([name, manner]) => [name, onPort(manner)])),
}

/** Only a QEMU that a guest has broken into reaches these, and SECURITY.md promises nothing about it: it holds the agent longer. */
const ofQemu = { heldMs: 4_000, rssMb: 300 }
/** As many guests at once as three Macs can have begin with an empty heap. */
const limitsBy: Readonly<Record<string, object>> = { 'guest agent': { rssMb: 300 }, QMP: ofQemu, NBD: ofQemu }
const limitsOf = (what: string) => ({ limits: limitsBy[what] ?? {} })

const doors = (what: string, attacks: Attacks) =>
  Object.entries(attacks).map(([name, attack]) => ({ name: `${what}: ${name}`, attack, ...limitsOf(what) }))

/** One after the other, so that the cost of each is known. */
export const guestOneByOne: Doors<HostTarget> = {
  start: startHost,
  doors: Object.entries({ ...waiting, NBD: disks }).flatMap(([what, attacks]) => doors(what, attacks)),
}

/** All of a kind at once, because most of their time is spent waiting. */
export const guest: Doors<HostTarget> = {
  start: startHost,
  doors: [
    ...Object.entries(waiting).map(([what, attacks]) => ({
      name: `${what}: every kind of garbage`,
      ...limitsOf(what),
      attack: async (attacker: Attacker, host: HostTarget) => {
        await Promise.all(Object.values(attacks).map((attack) => attack(attacker, host)))
      },
    })),
    ...doors('NBD', disks),
  ],
}
