// A suite of attacks: a test per door, each with what it sent and what that cost the program and its other callers.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { seeded } from '../support/history/random.ts'
import { Attacker, type Effort } from './attacker.ts'
import { type Cost, costOf, exceeded, joined, type Limits, type Program, usualLimits, Watch } from './watch.ts'

/** A way in, with the worst requests known for it. */
export interface Door<P extends Program> {
  readonly name: string
  /** Throws if something else than a limit is wrong, such as data of another namespace in an answer. */
  attack(attacker: Attacker, program: P): Promise<void>
  readonly limits?: Partial<Limits>
}

interface Doors<P extends Program> {
  /** The program under attack, once for all doors. */
  start(): Promise<P & AsyncDisposable>
  readonly doors: readonly Door<P>[]
}

export const isLong = Boolean(process.env.SVC3_ATTACK_LONG)
const effort: Effort = isLong
  ? { isLong, randomSeconds: 120, maxSeconds: 300 }
  : { isLong, randomSeconds: 3, maxSeconds: 30 }
/** A change that is allowed is a line of the log, and a long run makes more of them. */
const limitsOfRun: Limits = isLong ? { ...usualLimits, logKb: 8 * usualLimits.logKb } : usualLimits
const seed = process.env.SVC3_ATTACK_SEED ?? (isLong ? String(Date.now()) : 'short')
const only = new RegExp(process.env.SVC3_ATTACK_DOOR ?? '')

export function attackAll<P extends Program>(title: string, { start, doors }: Doors<P>): void {
  const chosen = doors.filter(({ name }) => only.test(name))
  // A suite without tests would start its program all the same.
  if (chosen.length === 0) return
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

    for (const { name, attack, limits = {} } of chosen) {
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
          const period = await settled(watch).catch(() => undefined)
          cost = period && costOf(period, attacker.connections)
          test.diagnostic(row(attacker, cost, performance.now() - startMs))
        }
        assert.ok(cost, `the program has ended: ${program.output().slice(-3_000)}`)
        assert.deepEqual(attacker.faults, [], `answered with 500 (SVC3_ATTACK_SEED=${seed})`)
        assert.deepEqual(exceeded(cost, { ...limitsOfRun, ...limits }), [], `SVC3_ATTACK_SEED=${seed}`)
      })
    }
  })
}

const quietMs = 300
/** A program that works for longer after its attacker left has to be fast for others all the same. */
const maxSettleMs = 30_000

/** Waits until the program rests; returns what was seen since the last time that it did. */
async function settled(watch: Watch) {
  let whole = await watch.period()
  const endMs = performance.now() + maxSettleMs
  for (;;) {
    await sleep(quietMs)
    const next = await watch.period()
    whole = joined(whole, next)
    if (next.busyMs < quietMs / 3 || performance.now() > endMs) return whole
  }
}

function row({ sent, statuses, connections }: Attacker, cost: Cost | undefined, tookMs: number): string {
  const answers = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}×${count}`)
  const costs = cost
    ? `held ${cost.heldMs} ms, main thread ${(cost.mainThreadMs / 1_000).toFixed(1)} s, memory +${cost.rssMb} MB, ` +
      `descriptors +${cost.descriptors}, disk +${cost.diskMb} MB, log +${cost.logKb} KB`
    : 'the program has ended'
  return `${sent} requests on ${connections} connections (${answers.join(' ')}) in ${(tookMs / 1_000).toFixed(1)} s, seed ${seed}: ${costs}`
}
