// Starts the watcher of a program, and says what a period of attack may cost.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { endService } from '../support/processes/leftovers.ts'
import type { Peak, Seen, Watched } from './watcher.ts'

export interface Limits {
  readonly heldMs: number
  readonly rssMb: number
  /** In addition to the connections that the attacker holds. */
  readonly descriptors: number
  readonly diskMb: number
  readonly logKb: number
}

export const usualLimits: Limits = { heldMs: 250, rssMb: 200, descriptors: 500, diskMb: 50, logKb: 1_024 }

/** What was seen in a period, and how much the program logged. */
interface Period extends Seen {
  readonly logBytes: number
}

/** What a period cost, in the units of its limits. */
export interface Cost extends Limits {
  readonly mainThreadMs: number
  readonly unanswered: readonly string[]
}

export interface Program extends Watched {
  /** What it has logged so far. */
  output(): string
}

export class Watch implements AsyncDisposable {
  readonly #program: Program
  readonly #child: ChildProcess
  readonly #ended: Promise<never>
  #answer: (seen: unknown) => void = () => undefined
  /** Called when the program has taken so much memory that the machine may suffer. */
  onExcess: () => void = () => undefined
  #logBytes = 0

  constructor(program: Program) {
    const { pid, pingUrl, folder } = program
    const watched = JSON.stringify({ pid, pingUrl, folder } satisfies Watched)
    this.#program = program
    this.#child = fork(path.join(import.meta.dirname, 'watcher.ts'), [watched], { stdio: 'inherit' })
    endService(this.#child)
    this.#child.on('message', (message: Seen | 'excess') => {
      if (message === 'excess') this.onExcess()
      else this.#answer(message)
    })
    this.#ended = once(this.#child, 'exit').then(() => assert.fail('the program under attack has ended'))
    this.#ended.catch(() => undefined)
  }

  /** Ends a period, and begins the next one. */
  async period(): Promise<Period> {
    const answer = new Promise((resolve) => {
      this.#answer = resolve
    })
    this.#child.send('next')
    const seen = (await Promise.race([answer, this.#ended])) as Seen
    const logged = this.#program.output().length
    const logBytes = logged - this.#logBytes
    this.#logBytes = logged
    return { ...seen, logBytes }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}

/** A period and the one that follows it, as one. */
export const joined = (first: Period, second: Period): Period => ({
  heldMs: Math.max(first.heldMs, second.heldMs),
  unanswered: [...first.unanswered, ...second.unanswered],
  mainThreadMs: first.mainThreadMs + second.mainThreadMs,
  busyMs: first.busyMs + second.busyMs,
  rss: joinedPeak(first.rss, second.rss),
  descriptors: joinedPeak(first.descriptors, second.descriptors),
  diskBytes: joinedPeak(first.diskBytes, second.diskBytes),
  logBytes: first.logBytes + second.logBytes,
})

const joinedPeak = ({ first, max }: Peak, second: Peak): Peak => ({ first, max: Math.max(max, second.max) })

/** `connections`: those that the attacker held at once. */
export const costOf = (period: Period, connections = 0): Cost => ({
  heldMs: Math.round(period.heldMs),
  rssMb: megabytes(growth(period.rss)),
  descriptors: Math.max(0, growth(period.descriptors) - connections),
  diskMb: megabytes(growth(period.diskBytes)),
  logKb: Math.ceil(period.logBytes / 1_024),
  mainThreadMs: Math.round(period.mainThreadMs),
  unanswered: period.unanswered,
})

const growth = ({ first, max }: Peak): number => max - first
const megabytes = (bytes: number): number => Math.round(bytes / 104_857.6) / 10

/** The limits that a period exceeded, as `the event loop held for 900 ms (limit 250)`. */
export function exceeded(cost: Cost, limits: Limits): string[] {
  const rows: readonly [string, keyof Limits, string][] = [
    ['the event loop held for', 'heldMs', 'ms'],
    ['memory +', 'rssMb', 'MB'],
    ['descriptors +', 'descriptors', ''],
    ['disk +', 'diskMb', 'MB'],
    ['log +', 'logKb', 'KB'],
  ]
  const over = rows
    .filter(([, name]) => cost[name] > limits[name])
    .map(([what, name, unit]) => `${what} ${cost[name]} ${unit} (limit ${limits[name]})`)
  return [...over, ...new Set(cost.unanswered.map((why) => `a request of another caller unanswered: ${why}`))]
}
