// Fairness of the queue on simulated nodes: whose turn it is when a VM ends, how a backlog is shared, that no capacity is idle
// while a waiting VM fits, and that a large VM gets a node.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { type Candidate, type Demand, place } from '../placement.ts'
import { orderOf, type Shares, starveAfterMs } from './queue.ts'
import { type Amounts, nothing, plus, type Totals } from './quota.ts'
import { shareOf } from './shares.ts'
import { Starvation, type Turn, Turns } from './turns.ts'

interface Job {
  readonly id: number
  readonly owner: string
  readonly cpu: number
  readonly seconds: number
  readonly priority?: number
  readonly arrivesAt?: number
}
interface Running extends Job {
  readonly node: string
  readonly startedAt: number
  readonly endsAt: number
}

const baseMs = Date.parse('2026-11-17T00:00:00Z')
const memoryPerCore = 1_024
const amountsOf = ({ cpu }: Job): Amounts => ({ cpu, memoryMiB: cpu * memoryPerCore, macos: 0 })
const demandOf = ({ cpu }: Job): Demand => ({
  architecture: 'amd64',
  image: 'x',
  cpu,
  memoryMiB: cpu * memoryPerCore,
  gpuPassthrough: false,
  tagRequired: false,
  scheduler: 'default',
  vncConsole: false,
  reservedPorts: [],
})

interface SimulatedTurn extends Turn {
  readonly job: Job
}

/** Simulated nodes, VMs and time. */
class Cluster {
  readonly waiting = new Map<string, SimulatedTurn>()
  readonly running = new Set<Running>()
  readonly started: Running[] = []
  readonly state = new Starvation<SimulatedTurn>()
  readonly nodes: Readonly<Record<string, number>>
  readonly weights: Readonly<Record<string, number>>
  second = 0
  /** Core seconds by owner. */
  readonly coreSeconds = new Map<string, number>()

  constructor(nodes: Readonly<Record<string, number>>, weights: Readonly<Record<string, number>> = {}) {
    this.nodes = nodes
    this.weights = weights
  }

  get shares(): Shares {
    const usage = new Map<string, Totals>()
    for (const job of this.running) usage.set(job.owner, plus(usage.get(job.owner) ?? nothing, amountsOf(job)))
    const cpu = Object.values(this.nodes).reduce((sum, cores) => sum + cores, 0)
    return { usage, weights: this.weights, total: { cpu, memoryMiB: cpu * memoryPerCore, macos: 0 } }
  }

  arrive(job: Job): void {
    const key = String(job.id).padStart(8, '0')
    const createdAt = new Date(baseMs + this.second * 1_000).toISOString()
    const turn = {
      key,
      owner: job.owner,
      priority: job.priority ?? 0,
      createdAt,
      amounts: amountsOf(job),
      demand: demandOf(job),
    }
    this.waiting.set(key, { ...turn, namespace: 'svc-a', job })
  }

  candidates(): (Candidate & { unfit?: Candidate['unfit']; freeCpu: number; freeMemoryMiB: number; vms: number })[] {
    return Object.entries(this.nodes).map(([name, cpu]) => {
      const own = [...this.running].filter(({ node }) => node === name)
      const freeCpu = cpu - own.reduce((sum, job) => sum + job.cpu, 0)
      const common = {
        isKnown: true,
        architecture: 'amd64' as const,
        tags: [],
        gpus: 0,
        images: [],
        freeGpus: 0,
        macosVms: 0,
      }
      const memory = { memoryMiB: cpu * memoryPerCore, freeMemoryMiB: freeCpu * memoryPerCore }
      return { ...common, ...memory, name, cpu, freeCpu, vms: own.length, isPortTaken: () => false }
    })
  }

  /** A run of the scheduler; `only`: new VMs. */
  schedule(only: Iterable<SimulatedTurn> = this.waiting.values()): Running[] {
    const nodes = this.candidates()
    const nowMs = baseMs + this.second * 1_000
    const turns = new Turns(this.state, only, { sharesOf: () => this.shares, nowMs })
    const placed: Running[] = []
    for (let turn = turns.next(); turn; turn = turns.next()) {
      const found = place(turn.demand, nodes)
      const node = found.ok ? found.node : undefined
      if (!node) {
        const kept = turns.refused(turn, nodes)
        for (const each of nodes) if (each.name === kept) each.unfit = { cause: 'reserved', vm: turn.key }
        continue
      }
      turns.placed(turn, turn.amounts, node)
      node.freeCpu -= turn.job.cpu
      node.freeMemoryMiB -= turn.job.cpu * memoryPerCore
      node.vms += 1
      const { job } = turn
      const run = { ...job, node: node.name, startedAt: this.second, endsAt: this.second + job.seconds }
      placed.push(run)
      this.waiting.delete(turn.key)
      this.state.forget(turn.key)
    }
    for (const run of placed) {
      this.running.add(run)
      this.started.push(run)
    }
    return placed
  }

  /** Advances by a second. Returns the VMs that ended. */
  tick(): Running[] {
    for (const { owner, cpu } of this.running) this.coreSeconds.set(owner, (this.coreSeconds.get(owner) ?? 0) + cpu)
    this.second += 1
    const ended = [...this.running].filter(({ endsAt }) => endsAt <= this.second)
    for (const run of ended) this.running.delete(run)
    return ended
  }

  keptNode(): string | undefined {
    return this.state.kept.get('svc-a')?.node
  }
}

const owners = ['ada', 'bob', 'cyd', 'dee']
const jobs = (maxCpu: number): fc.Arbitrary<Job[]> =>
  fc
    .array(
      fc.record({
        owner: fc.constantFrom(...owners),
        cpu: fc.integer({ min: 1, max: maxCpu }),
        seconds: fc.integer({ min: 1, max: 30 }),
        priority: fc.integer({ min: -2, max: 2 }),
        arrivesAt: fc.integer({ min: 0, max: 40 }),
      }),
      { minLength: 1, maxLength: 60 },
    )
    .map((list) => list.map((job, id) => ({ ...job, id })))
const weights = fc.record(Object.fromEntries(owners.map((owner) => [owner, fc.integer({ min: 1, max: 4 })])))
const fleet = fc
  .array(fc.integer({ min: 4, max: 8 }), { minLength: 1, maxLength: 4 })
  .map((cores) => Object.fromEntries(cores.map((cpu, index) => [`node-${index}`, cpu])))

/** Runs all VMs to the end, and calls `look` after every round. */
function run(cluster: Cluster, list: readonly Job[], look: (placed: Running[], before: Shares) => void): void {
  for (let at = 0; at < 5_000; at++) {
    for (const job of list) if ((job.arrivesAt ?? 0) === at) cluster.arrive(job)
    const before = cluster.shares
    look(cluster.schedule(), before)
    cluster.tick()
    if (at > 40 && cluster.waiting.size === 0 && cluster.running.size === 0) return
  }
  assert.fail(`${cluster.waiting.size} VMs never ran`)
}

describe('the queue', () => {
  it('freed capacity goes to the waiting owner with the lowest share whose VM fits', () => {
    fc.assert(
      fc.property(fleet, weights, jobs(1), (nodes, weight, list) => {
        const cluster = new Cluster(nodes, weight)
        run(cluster, list, (placed, before) => {
          // All VMs are equal, so no remaining owner has a lower share than the last placed one had.
          const used = new Map(before.usage)
          const share = (owner: string): number => shareOf(used.get(owner) ?? nothing, before.total, weight[owner])
          for (const each of placed) {
            const left = [...cluster.waiting.values()].map(({ owner }) => share(owner))
            assert.ok(Math.min(Number.POSITIVE_INFINITY, ...left) >= share(each.owner), `${each.owner} was not next`)
            used.set(each.owner, plus(used.get(each.owner) ?? nothing, amountsOf(each)))
          }
        })
      }),
      { numRuns: 60 },
    )
  })

  it('the queue takes the VMs of one owner by priority, then by age, regardless of other owners', () => {
    fc.assert(
      fc.property(fleet, weights, jobs(4), (nodes, weight, list) => {
        const cluster = new Cluster(nodes, weight)
        for (const job of list) cluster.arrive(job)
        const order = orderOf(cluster.waiting.values(), cluster.shares)
        assert.equal(new Set(order).size, list.length)
        for (const owner of owners) {
          const own = order.filter((turn) => turn.owner === owner)
          const sorted = own.toSorted((a, b) => b.priority - a.priority || (a.key < b.key ? -1 : 1))
          assert.deepEqual(own, sorted)
        }
        // Priorities of one owner do not affect the VMs of others.
        const flat = [...cluster.waiting.values()].map((turn) => ({
          ...turn,
          priority: turn.owner === 'ada' ? 0 : turn.priority,
        }))
        const others = (turns: readonly Turn[]) => turns.filter(({ owner }) => owner !== 'ada').map(({ key }) => key)
        if (list.every(({ cpu }) => cpu === list[0]?.cpu))
          assert.deepEqual(others(orderOf(flat, cluster.shares)), others(order))
      }),
    )
  })

  it('the queue leaves no usable capacity idle, except one reserved node', () => {
    fc.assert(
      fc.property(fleet, weights, jobs(4), (nodes, weight, list) => {
        const cluster = new Cluster(nodes, weight)
        run(cluster, list, () => {
          const open = cluster.candidates().filter(({ name }) => name !== cluster.keptNode())
          for (const { demand, key } of cluster.waiting.values())
            assert.equal(place(demand, open).ok, false, `${key} waits, and fits`)
        })
      }),
      { numRuns: 60 },
    )
  })

  it('the queue starts each VM once and ends none', () => {
    fc.assert(
      fc.property(fleet, weights, jobs(4), (nodes, weight, list) => {
        const cluster = new Cluster(nodes, weight)
        run(cluster, list, () => {
          for (const { name, freeCpu } of cluster.candidates()) assert.ok(freeCpu >= 0, `${name} is overcommitted`)
        })
        assert.deepEqual(
          cluster.started.map(({ id }) => id).sort((a, b) => a - b),
          list.map(({ id }) => id),
        )
      }),
      { numRuns: 60 },
    )
  })

  it('the queue shares a backlog evenly or by weight, even if one owner requests ten times as much', () => {
    for (const weight of [1, 3]) {
      const cluster = new Cluster({ 'node-0': 8, 'node-1': 8 }, { bob: weight })
      let id = 0
      let endings = 0
      const job = (owner: string): Job => ({ id: id++, owner, cpu: 1, seconds: 20 + (id % 7) })
      while (endings < 400) {
        // Both owners have a backlog, one of them ten times the other's.
        const waits = (owner: string): number =>
          [...cluster.waiting.values()].filter((turn) => turn.owner === owner).length
        while (waits('ada') < 100) cluster.arrive(job('ada'))
        while (waits('bob') < 10) cluster.arrive(job('bob'))
        cluster.schedule()
        endings += cluster.tick().length
        // Measured after fifty VMs have ended.
        if (endings < 50) cluster.coreSeconds.clear()
      }
      const [ada = 0, bob = 0] = ['ada', 'bob'].map((owner) => cluster.coreSeconds.get(owner) ?? 0)
      assert.ok(Math.abs(bob / ada / weight - 1) <= 0.1, `weight ${weight}: ${bob} to ${ada}`)
    }
  })

  it('the queue starts a large VM among endless small ones within a minute and the longest job', () => {
    for (const longest of [10, 90]) {
      const cluster = new Cluster({ 'node-0': 8, 'node-1': 8 })
      let id = 0
      const fill = (): void => {
        while (cluster.waiting.size < 40)
          cluster.arrive({ id: id++, owner: owners[id % 3] ?? '', cpu: 1, seconds: 1 + (id % longest) })
      }
      for (; cluster.second < 120; cluster.tick()) {
        fill()
        cluster.schedule()
      }
      const since = cluster.second
      cluster.arrive({ id: 1e6, owner: 'dee', cpu: 8, seconds: 5 })
      for (; cluster.second < since + 300; cluster.tick()) {
        fill()
        cluster.schedule()
      }
      const large = cluster.started.find(({ cpu }) => cpu === 8)
      assert.ok(large, 'it never ran')
      assert.ok(large.startedAt - since <= starveAfterMs / 1_000 + longest + 2, `after ${large.startedAt - since} s`)
      assert.equal(cluster.keptNode(), undefined)
    }
  })

  it('the queue reserves no node for equal VMs, because none is overtaken', () => {
    const cluster = new Cluster({ 'node-0': 8 })
    for (let id = 0; id < 200; id++) cluster.arrive({ id, owner: owners[id % 4] ?? '', cpu: 2, seconds: 7 + (id % 5) })
    while (cluster.waiting.size > 0) {
      cluster.schedule()
      assert.equal(cluster.keptNode(), undefined)
      cluster.tick()
    }
  })

  it('the queue orders 10,000 VMs of 50 owners in less than 50 ms', () => {
    const cluster = new Cluster(Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`node-${index}`, 16])))
    for (let id = 0; id < 10_000; id++)
      cluster.arrive({ id, owner: `owner-${id % 50}`, cpu: 1 + (id % 8), seconds: 60, priority: id % 3 })
    const { shares } = cluster
    // CPU time, so that other processes do not matter.
    const times = Array.from({ length: 5 }, () => {
      const before = process.cpuUsage()
      assert.equal(orderOf(cluster.waiting.values(), shares).length, 10_000)
      return process.cpuUsage(before).user / 1_000
    })
    assert.ok(Math.min(...times) < 50, `${times.map((ms) => ms.toFixed(1))} ms`)
  })
})
