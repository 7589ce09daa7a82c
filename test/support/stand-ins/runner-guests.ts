// Guests of the simulated driver that start a runner as a real one would: it reads its configuration from the first-boot script,
// connects to the stand-in of GitHub, works for a while, and powers its VM off.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Handle, Started, VmSpec } from '../../../src/drivers/driver.ts'
import { SimulatedDriver, type SimulatedKnobs } from '../../../src/drivers/simulated.ts'
import type { GitHubStandIn } from './github.ts'

export interface GuestBehaviour {
  /** How long a job takes. */
  jobMs: number
  /** So many of the next guests start no runner, or power off without one. */
  mute: number
  broken: number
}

export class RunnerGuests extends SimulatedDriver {
  readonly #github: GitHubStandIn
  readonly #behaviour: GuestBehaviour
  readonly #started = new Set<string>()

  constructor(github: GitHubStandIn, behaviour: GuestBehaviour, knobs: SimulatedKnobs = {}) {
    super(knobs)
    this.#github = github
    this.#behaviour = behaviour
  }

  override async start(handle: Handle, vm: VmSpec, signal: AbortSignal): Promise<Started> {
    const started = await super.start(handle, vm, signal)
    // A first boot, whoever asks again.
    if (!this.#started.has(vm.uid)) {
      this.#started.add(vm.uid)
      void this.#boot(handle, vm)
    }
    return started
  }

  async #boot(handle: Handle, vm: VmSpec): Promise<void> {
    const script = Buffer.from(vm.userdata ?? '', 'base64').toString()
    const [, jit] = /^export ACTIONS_RUNNER_INPUT_JITCONFIG='([^']+)'$/m.exec(script) ?? []
    if (jit === undefined) return
    if (this.#behaviour.mute > 0) {
      this.#behaviour.mute -= 1
      return
    }
    if (this.#behaviour.broken > 0) this.#behaviour.broken -= 1
    else {
      const running = await this.#github.connect(jit)
      if (running) {
        await sleep(this.#behaviour.jobMs)
        running.end()
      }
    }
    await super
      .stop(handle, { signal: AbortSignal.timeout(5_000) } as Parameters<SimulatedDriver['stop']>[1])
      .catch(() => undefined)
  }
}
