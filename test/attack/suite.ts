// A suite of attacks: a test per door, each with what it sent and what that cost the program and its other callers.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { seeded } from '../support/history/random.ts'
import { Attacker, type Effort } from './attacker.ts'
import { broken, type Cost, type Limits, type Program, usualLimits, Watch } from './watch.ts'

/** A way in, with the worst requests known for it. */
interface Door<P extends Program> {
  readonly name: string
  /** Throws if something else than a limit is wrong, such as data of another namespace in an answer. */
  attack(attacker: Attacker, program: P): Promise<void>
  readonly limits?: Partial<Limits>
}

export interface Doors<P extends Program> {
  /** The program under attack, once for all doors. */
  start(): Promise<P & AsyncDisposable>
  readonly doors: readonly Door<P>[]
}

const efforts: Readonly<Record<'short' | 'long', Effort>> = {
  short: { isLong: false, randomSeconds: 3, mostSeconds: 30 },
  long: { isLong: true, randomSeconds: 120, mostSeconds: 300 },
}

export function attackAll<P extends Program>(
  title: string,
  how: keyof typeof efforts,
  { start, doors }: Doors<P>,
): void {
  const effort = efforts[how]
  const seed = process.env.SVC3_ATTACK_SEED ?? (effort.isLong ? String(Date.now()) : 'short')
  const only = new RegExp(process.env.SVC3_ATTACK_DOOR ?? '')
  describe(title, () => {
    let program: P & AsyncDisposable
    let watch: Watch
    before(async () => {
      program = await start()
      watch = new Watch(program)
    })
    after(async () => {
      await watch?.[Symbol.asyncDispose]()
      await program?.[Symbol.asyncDispose]()
    })

    for (const { name, attack, limits = {} } of doors) {
      if (!only.test(name)) continue
      it(name, async (test) => {
        const attacker = new Attacker(seeded(seed).named(name), effort)
        await settled(watch)
        watch.onExcess = () => attacker.end()
        const startMs = performance.now()
        let cost: Cost | undefined
        try {
          await attack(attacker, program)
        } finally {
          attacker.end()
          cost = await settled(watch, attacker.connections).catch(() => undefined)
          test.diagnostic(row(attacker, cost, performance.now() - startMs, seed))
        }
        assert.ok(cost, `the program has ended: ${program.output().slice(-3_000)}`)
        assert.deepEqual(attacker.faults, [], `answered with 500 (SVC3_ATTACK_SEED=${seed})`)
        assert.deepEqual(broken(cost, { ...usualLimits, ...limits }), [], `SVC3_ATTACK_SEED=${seed}`)
      })
    }
  })
}

const quietMs = 300
/** At most; a program that works for longer after its attacker left has to be fast for others all the same. */
const settleMs = 30_000

/** Waits until the program rests; returns the cost since the last time that it did. */
async function settled(watch: Watch, connections = 0): Promise<Cost> {
  let whole = await watch.period(connections)
  const endMs = performance.now() + settleMs
  for (;;) {
    await sleep(quietMs)
    const next = await watch.period(connections)
    const isQuiet = next.busyMs < quietMs / 3
    whole = joined(whole, next)
    if (isQuiet || performance.now() > endMs) return whole
  }
}

const joined = (a: Cost, b: Cost): Cost => ({
  heldMs: Math.max(a.heldMs, b.heldMs),
  rssMb: Math.max(a.rssMb, b.rssMb),
  descriptors: Math.max(a.descriptors, b.descriptors),
  diskMb: Math.max(a.diskMb, b.diskMb),
  logKb: a.logKb + b.logKb,
  mainThreadMs: a.mainThreadMs + b.mainThreadMs,
  busyMs: a.busyMs + b.busyMs,
  unanswered: [...a.unanswered, ...b.unanswered],
})

function row({ sent, statuses, connections }: Attacker, cost: Cost | undefined, tookMs: number, seed: string): string {
  const answers = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}×${count}`)
  const spent = cost
    ? `held ${cost.heldMs} ms, main thread ${(cost.mainThreadMs / 1_000).toFixed(1)} s, memory +${cost.rssMb} MB, ` +
      `descriptors +${cost.descriptors}, disk +${cost.diskMb} MB, log +${cost.logKb} KB`
    : 'the program has ended'
  return `${sent} requests on ${connections} connections (${answers.join(' ')}) in ${(tookMs / 1_000).toFixed(1)} s, seed ${seed}: ${spent}`
}
