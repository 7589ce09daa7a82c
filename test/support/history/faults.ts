// What is done to a service during a history: a table of faults, and a plan of them determined by a seed.
import { setTimeout as sleep } from 'node:timers/promises'
import { slowDisk } from '../processes/slow-disk.ts'
import { eventually } from '../tools/eventually.ts'
import type { HistoryCluster, HistoryServer, StoreKind } from './cluster.ts'
import type { Random } from './random.ts'

/** Drawn for every fault, used or not, so that a plan does not depend on the table. */
interface Draw {
  readonly server: number
  readonly member: number
  readonly otherMember: number
  readonly isOneWay: boolean
  readonly share: number
}

type Heal = () => Promise<void>

interface Fault {
  readonly on: readonly StoreKind[]
  /** Faults of different kinds can overlap. They end in this order. */
  readonly hits: 'ways' | 'clocks' | 'members' | 'servers'
  readonly isAlone?: boolean
  begin(cluster: HistoryCluster, draw: Draw): Promise<Heal>
}

const both: readonly StoreKind[] = ['sqlite', 'etcd']
const etcdOnly: readonly StoreKind[] = ['etcd']
const order = ['ways', 'clocks', 'members', 'servers'] as const
/** Tokens are accepted with clocks that are a minute off. */
const maxShiftMs = 50_000
const slowestDiskMs = 400
const slowestWayMs = 300
const timeoutMs = 60_000

const serverOf = ({ servers }: HistoryCluster, { server }: Draw): HistoryServer =>
  servers[server % servers.length] as HistoryServer
const etcdOf = ({ etcd }: HistoryCluster) => etcd ?? raise('there is no etcd')
const memberOf = (cluster: HistoryCluster, { member }: Draw) =>
  etcdOf(cluster).members[member] ?? raise(`there is no member ${member}`)
const wayOf = (cluster: HistoryCluster, draw: Draw) =>
  serverOf(cluster, draw).members[draw.member] ?? raise(`there is no member ${draw.member}`)
const raise = (text: string): never => {
  throw new Error(text)
}

const faults: Readonly<Record<string, Fault>> = {
  'kill a server': {
    on: both,
    hits: 'servers',
    begin: async (cluster, draw) => {
      const server = serverOf(cluster, draw)
      await server.kill()
      return () => eventually(() => server.start(), timeoutMs)
    },
  },
  'pause a server': {
    on: both,
    hits: 'servers',
    begin: async (cluster, draw) => {
      const server = serverOf(cluster, draw)
      server.pause()
      return async () => server.resume()
    },
  },
  'slow the disk of the server': {
    on: ['sqlite'],
    hits: 'servers',
    begin: async (cluster, draw) => {
      const slow = await slowDisk(serverOf(cluster, draw).pid, Math.ceil(draw.share * slowestDiskMs))
      return () => slow.end()
    },
  },
  'shift the clock of a server': {
    on: both,
    hits: 'clocks',
    begin: async (cluster, draw) => {
      const server = serverOf(cluster, draw)
      await server.shiftClock(Math.round((2 * draw.share - 1) * maxShiftMs))
      return () => server.shiftClock(0)
    },
  },
  'lose answers of a server': {
    on: both,
    hits: 'ways',
    begin: async (cluster, draw) => {
      const { clients } = serverOf(cluster, draw)
      clients.lose('answers')
      return async () => {
        clients.lose('nothing')
        clients.cut()
      }
    },
  },
  'cut the clients of a server': {
    on: both,
    hits: 'ways',
    begin: async (cluster, draw) => {
      serverOf(cluster, draw).clients.cut()
      return async () => undefined
    },
  },
  'cut a server from the others': {
    on: etcdOnly,
    hits: 'ways',
    begin: async (cluster, draw) => {
      const { others } = serverOf(cluster, draw)
      others.close()
      return async () => others.open()
    },
  },
  'cut a server from a member': {
    on: etcdOnly,
    hits: 'ways',
    begin: async (cluster, draw) => {
      const way = wayOf(cluster, draw)
      if (draw.isOneWay) way.lose(draw.share < 0.5 ? 'requests' : 'answers')
      else way.close()
      return async () => {
        way.lose('nothing')
        way.cut()
        way.open()
      }
    },
  },
  'cut a server from all members': {
    on: etcdOnly,
    hits: 'ways',
    begin: async (cluster, draw) => {
      const { members } = serverOf(cluster, draw)
      for (const way of members) way.close()
      return async () => {
        for (const way of members) way.open()
      }
    },
  },
  'delay a server to all members': {
    on: etcdOnly,
    hits: 'ways',
    begin: async (cluster, draw) => {
      const { members } = serverOf(cluster, draw)
      for (const way of members) way.delay(Math.ceil(draw.share * slowestWayMs))
      return async () => {
        for (const way of members) way.delay(0)
      }
    },
  },
  'kill a member': {
    on: etcdOnly,
    hits: 'members',
    begin: async (cluster, draw) => {
      const member = memberOf(cluster, draw)
      await member.kill()
      return () => member.start()
    },
  },
  'kill two members': {
    on: etcdOnly,
    hits: 'members',
    begin: async (cluster, draw) => {
      const two = etcdOf(cluster).members.filter((_, n) => n !== draw.member)
      await Promise.all(two.map((member) => member.kill()))
      return async () => void (await Promise.all(two.map((member) => member.start())))
    },
  },
  'pause the leading member': {
    on: etcdOnly,
    hits: 'members',
    begin: async (cluster) => {
      const leader = await etcdOf(cluster).leader()
      leader.pause()
      return async () => leader.resume()
    },
  },
  'pause a member': {
    on: etcdOnly,
    hits: 'members',
    begin: async (cluster, draw) => {
      const member = memberOf(cluster, draw)
      member.pause()
      return async () => member.resume()
    },
  },
  'slow the disk of a member': {
    on: etcdOnly,
    hits: 'members',
    begin: async (cluster, draw) => {
      const slow = await slowDisk(memberOf(cluster, draw).pid, Math.ceil(draw.share * slowestDiskMs))
      return () => slow.end()
    },
  },
  'cut a member from another': {
    on: etcdOnly,
    hits: 'members',
    begin: async (cluster, { member, otherMember, isOneWay }) => {
      const etcd = etcdOf(cluster)
      await etcd.cut(member, otherMember)
      if (!isOneWay) await etcd.cut(otherMember, member)
      return async () => etcd.mend()
    },
  },
  'cut a member from all others': {
    on: etcdOnly,
    hits: 'members',
    begin: async (cluster, { member }) => {
      const etcd = etcdOf(cluster)
      for (const other of [0, 1, 2].filter((n) => n !== member)) {
        await etcd.cut(member, other)
        await etcd.cut(other, member)
      }
      return async () => etcd.mend()
    },
  },
  'replace a member': {
    on: etcdOnly,
    hits: 'members',
    isAlone: true,
    begin: async (cluster, { member }) => {
      await etcdOf(cluster).replace(member)
      return async () => undefined
    },
  },
}

interface Planned extends Draw {
  readonly name: string
}

interface FaultStep {
  readonly faults: readonly Planned[]
  readonly holdMs: number
  readonly restMs: number
}

/** The next step of a plan: one fault, or two at once. */
export function nextStep(random: Random, kind: StoreKind): FaultStep {
  const names = Object.keys(faults).filter((name) => faults[name]?.on.includes(kind))
  const draw = (choices: readonly string[]): Planned => {
    const [name, server, member] = [random.pick(choices), random.integer(0, 2), random.integer(0, 2)]
    const otherMember = (member + random.integer(1, 2)) % 3
    return { name, server, member, otherMember, isOneWay: random.chance(0.5), share: random.next() }
  }
  const first = draw(names)
  const { hits, isAlone } = faults[first.name] ?? raise(first.name)
  const beside = names.filter((name) => faults[name]?.hits !== hits && !faults[name]?.isAlone)
  const second = draw(beside)
  const areTwo = random.chance(0.4) && !isAlone
  return {
    faults: areTwo ? [first, second] : [first],
    // Shorter and longer than leases, requests and elections.
    holdMs: random.integer(200, random.pick([1_000, 3_000, 8_000])),
    restMs: random.integer(200, 2_500),
  }
}

export const textOfStep = ({ faults: planned, holdMs }: FaultStep): string =>
  `${planned.map(({ name, server, member }) => `${name} (server ${server + 1}, member ${member})`).join(' and ')}, ${holdMs} ms`

/** The service is healthy again when this resolves. */
export async function runStep(cluster: HistoryCluster, { faults: planned, holdMs, restMs }: FaultStep): Promise<void> {
  const heals: { readonly place: number; readonly heal: Heal }[] = []
  try {
    for (const each of planned) {
      const fault = faults[each.name] ?? raise(each.name)
      heals.push({ place: order.indexOf(fault.hits), heal: await fault.begin(cluster, each) })
    }
    await sleep(holdMs)
  } finally {
    for (const { heal } of heals.sort((a, b) => a.place - b.place)) await heal()
  }
  await sleep(restMs)
}
