// Doors of a guest, and of a QEMU that a guest has broken into: the sockets on which an agent listens to them.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { agentSocket, qmpSocket } from '../../src/drivers/qemu/control/sockets.ts'
import { nbdOpening, nbdRead } from '../support/tools/nbd-client.ts'
import type { Attacker } from './attacker.ts'
import { type HostTarget, type Outcome, startHost } from './host-target.ts'
import { type Behaviour, drips, floods, says } from './hostile-guest.ts'
import { attackAll, type Door, isLong } from './suite.ts'

const deep = (count: number): string => '['.repeat(count) + ']'.repeat(count)

/** What a guest's agent says to the first command. */
const agents: Readonly<Record<string, Behaviour>> = {
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
const controls: Readonly<Record<string, Behaviour>> = {
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
const greetings: Readonly<Record<string, Behaviour>> = {
  'a greeting without end': floods('x'.repeat(65_536)),
  'control characters': floods('\x1b]0;x\x07\u009b2J\0\xff\r\n'.repeat(2_000)),
  'one byte at a time': drips('SSH-2.0-'.padEnd(100_000, 'x')),
  nothing: () => undefined,
}

/** Listens for as long as `act` lasts. */
async function listening(behaviour: Behaviour, where: string | undefined, act: (server: net.Server) => Promise<void>) {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).resume()
    behaviour(socket)
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
const isFault = ({ kind = '' }: Outcome): boolean => ['TypeError', 'RangeError', 'ReferenceError'].includes(kind)

async function onSocket(
  attacker: Attacker,
  host: HostTarget,
  [where, parts]: readonly [(runtime: string) => string, readonly string[]],
  behaviour: Behaviour,
): Promise<void> {
  await Promise.all(
    parts.map(async (part) => {
      const runtime = await fs.mkdtemp(path.join(host.folder, 'r-'))
      await listening(behaviour, where(runtime), async () => {
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
  // Each connection may have 16 of them in progress.
  'the longest reads, whose answers are never read': nbd(3, nbdOpening(), many(nbdRead(1, longestRead), 5_000)),
  'tiny reads, whose answers are never read': nbd(20, nbdOpening(), many(nbdRead(1, 1), 50_000)),
}

type Attack = (attacker: Attacker, host: HostTarget) => Promise<void>
type Attacks = Readonly<Record<string, Attack>>

const onSockets = (behaviours: Readonly<Record<string, Behaviour>>, ...rest: Parameters<typeof onSocket>[2]): Attacks =>
  Object.fromEntries(
    Object.entries(behaviours).map(([name, behaviour]) => [
      name,
      (attacker, host) => onSocket(attacker, host, rest, behaviour),
    ]),
  )

const onPort =
  (behaviour: Behaviour): Attack =>
  (attacker, host) =>
    listening(behaviour, undefined, async (server) => {
      const { port } = server.address() as net.AddressInfo
      const ended = await Promise.all(Array.from({ length: 20 }, () => host.act(attacker, 'ssh', { port })))
      for (const acted of ended) assert.ok(!isFault(acted), acted.problem)
    })

const waiting: Readonly<Record<string, Attacks>> = {
  'guest agent': onSockets(agents, agentSocket, ['flush', 'tell', 'exec']),
  QMP: onSockets(controls, qmpSocket, isLong ? ['qmp', 'qmp'] : ['qmp']),
  'SSH port': Object.fromEntries(Object.entries(greetings).map(([name, behaviour]) => [name, onPort(behaviour)])),
}

/** In a short run, 36 connections to guest agents at once, and 10 to QEMUs, which only a guest that has broken into one reaches. */
const limitsOf: Readonly<Record<string, Door<HostTarget>['limits']>> = {
  'guest agent: every kind of garbage': { rssMb: 300 },
  'QMP: every kind of garbage': { rssMb: 300 },
}

const door = (name: string, attack: Attack): Door<HostTarget> => ({ name, attack, limits: limitsOf[name] ?? {} })
const oneByOne = (what: string, attacks: Attacks) =>
  Object.entries(attacks).map(([name, attack]) => door(`${what}: ${name}`, attack))
/** For a short run, because most of the time of these is spent waiting. */
const together = (what: string, attacks: Attacks) =>
  door(`${what}: every kind of garbage`, async (attacker, host) => {
    await Promise.all(Object.values(attacks).map((attack) => attack(attacker, host)))
  })

attackAll<HostTarget>('guests', {
  start: startHost,
  doors: [
    ...Object.entries(waiting).flatMap(([what, attacks]) =>
      isLong ? oneByOne(what, attacks) : together(what, attacks),
    ),
    ...oneByOne('NBD', disks),
  ],
})
