// Starts the watcher of a program, and says what a period of attack may cost.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { endService } from '../support/processes/leftovers.ts'
import type { Seen, Watched } from './watcher.ts'

export interface Limits {
  readonly heldMs: number
  readonly rssMb: number
  /** In addition to the connections that the attacker holds. */
  readonly descriptors: number
  readonly diskMb: number
  readonly logKb: number
}

export const usualLimits: Limits = { heldMs: 250, rssMb: 200, descriptors: 500, diskMb: 50, logKb: 1_024 }

/** What a period cost, in the units of its limits. */
export interface Cost extends Limits {
  readonly mainThreadMs: number
  readonly busyMs: number
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
    const given = JSON.stringify({ pid, pingUrl, folder } satisfies Watched)
    this.#program = program
    this.#child = fork(path.join(import.meta.dirname, 'watcher.ts'), [given], { stdio: 'inherit' })
    endService(this.#child)
    this.#child.on('message', (message: Seen | 'excess') => {
      if (message === 'excess') this.onExcess()
      else this.#answer(message)
    })
    this.#ended = once(this.#child, 'exit').then(() => assert.fail('the program under attack has ended'))
    this.#ended.catch(() => undefined)
  }

  /** Ends a period, and begins the next one. `connections`: those that the attacker held at once. */
  async period(connections = 0): Promise<Cost> {
    const answer = new Promise((resolve) => {
      this.#answer = resolve
    })
    this.#child.send('next')
    const { heldMs, unanswered, mainThreadMs, busyMs, rss, descriptors, diskBytes } = (await Promise.race([
      answer,
      this.#ended,
    ])) as Seen
    const logged = this.#program.output().length
    const logBytes = logged - this.#logBytes
    this.#logBytes = logged
    return {
      heldMs: Math.round(heldMs),
      rssMb: megabytes(rss.most - rss.first),
      descriptors: Math.max(0, descriptors.most - descriptors.first - connections),
      diskMb: megabytes(diskBytes.most - diskBytes.first),
      logKb: Math.ceil(logBytes / 1_024),
      mainThreadMs: Math.round(mainThreadMs),
      busyMs,
      unanswered,
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}

const megabytes = (bytes: number): number => Math.round(bytes / 104_857.6) / 10

/** The limits that a period broke, as `held 900 of 250 ms`. */
export function broken(cost: Cost, limits: Limits): string[] {
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
