// Three members of etcd under load for minutes: every member dies, pauses and restarts, the leader more often, two at
// once now and then. Every acknowledged write is stored once, the watch saw each, and writes continue within seconds.
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openEtcd } from '../../src/store/etcd/engine.ts'
import type { Store } from '../../src/store/store.ts'
import { type EtcdCluster, type EtcdMember, startEtcd } from '../support/processes/etcd.ts'
import { eventually } from '../support/tools/eventually.ts'
import { startLoad } from '../support/tools/store-history.ts'

let etcd: EtcdCluster
before(async () => {
  etcd = await startEtcd({ size: 3 })
})
after(() => etcd.end())

const open = (): Promise<Store> =>
  openEtcd({ endpoints: etcd.urls.map((url) => ({ url })), prefix: 'long', notice: () => undefined, keepRevisions: 0 })
const pick = (members: readonly EtcdMember[]): EtcdMember =>
  members[Math.floor(Math.random() * members.length)] as EtcdMember

interface Fault {
  readonly name: string
  /** Writes stop for longer than a leader's election takes. */
  readonly stopsWrites?: boolean
  /**
   * The limit counts from when a leader is there again: how long two that are left need to agree on one is up to etcd.
   */
  readonly isElectionLong?: boolean
  /** It depends on which member the client is at, and on which comes next. */
  readonly rounds?: number
  run(leader: EtcdMember, others: readonly EtcdMember[]): Promise<void>
}

const restart = async (member: EtcdMember): Promise<void> => {
  await sleep(3_000)
  await member.start()
}
const pause = async (member: EtcdMember): Promise<void> => {
  member.pause()
  await sleep(10_000)
  member.resume()
}

const faults: readonly Fault[] = [
  { name: 'the leader is killed', run: async (leader) => leader.kill().then(() => restart(leader)) },
  { name: 'a follower is killed', run: async (_, [one]) => one?.kill().then(() => restart(one)) },
  { name: 'the leader pauses 10 s', rounds: 6, isElectionLong: true, run: pause },
  { name: 'a follower pauses 10 s', run: (_, others) => pause(pick(others)) },
  { name: 'the leader restarts in order', run: async (leader) => leader.stop().then(() => restart(leader)) },
  {
    name: 'two die for 5 s',
    stopsWrites: true,
    run: async (leader, [one]) => {
      await Promise.all([leader.kill(), one?.kill()])
      await sleep(5_000)
      await Promise.all([leader.start(), one?.start()])
    },
  },
  {
    name: 'two pause for 10 s',
    stopsWrites: true,
    run: async (leader, [one]) => {
      await Promise.all([pause(leader), one && pause(one)])
    },
  },
]

const leads = async (n: number): Promise<boolean> => {
  // One that stops answers without saying who it is.
  const status = await etcd.post('/v3/maintenance/status', {}, n).catch(() => undefined)
  const { member_id: id } = (status?.header ?? {}) as { member_id?: string }
  return id !== undefined && id === status?.leader
}

/**
 * The longest time without a leader among the members that answer, while `work` ran. Two remaining members may vote for
 * themselves.
 */
async function longestElectionMs(work: Promise<unknown>): Promise<number> {
  let isOver = false
  const over = work.finally(() => {
    isOver = true
  })
  let [longestMs, ledMs] = [0, performance.now()]
  while (!isOver) {
    const asked = etcd.members.map((_, n) => Promise.race([leads(n), sleep(200, false)]))
    if ((await Promise.all(asked)).includes(true)) {
      longestMs = Math.max(longestMs, performance.now() - ledMs)
      ledMs = performance.now()
    }
    await sleep(50)
  }
  await over
  return Math.max(longestMs, performance.now() - ledMs)
}

for (const [n, { name, stopsWrites, isElectionLong, rounds = 2, run }] of faults.entries())
  for (let round = 1; round <= rounds; round++)
    it(`${name} (${round})`, { timeout: 120_000 }, async (t) => {
      const store = await open()
      const load = await startLoad(store, `/${round}/${n}/`)
      await eventually(async () => assert.ok(load.acknowledged() > 50), 30_000)
      const leader = await etcd.leader()
      load.takeLongestGapMs()
      const others = etcd.members.filter((member) => member !== leader)
      const electionMs = await longestElectionMs(run(leader, others))
      const healedMs = performance.now()
      await eventually(async () => assert.ok(load.lastAckMs() > healedMs), 30_000)
      await sleep(2_000)
      const gapMs = load.takeLongestGapMs()
      t.diagnostic(
        `no write for ${Math.round(gapMs)} ms, no leader for ${Math.round(electionMs)}; ${load.acknowledged()} written; ${JSON.stringify(load.faults())}`,
      )
      const fresh = await open()
      await load.finish(fresh)
      await Promise.all([store.close(), fresh.close()])
      // Last, so that what was written is judged in any case.
      const maxMs = isElectionLong ? Math.max(3_000, electionMs + 1_500) : 3_000
      if (!stopsWrites) assert.ok(gapMs <= maxMs, `no write for ${Math.round(gapMs)} ms`)
    })
