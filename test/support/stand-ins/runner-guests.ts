// Guests of the simulated driver that start a runner like real ones: they read its configuration from the first-boot
// script, connect to the stand-in for GitHub, work for a while, and power off.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Handle, Started, VmSpec } from '../../../src/drivers/driver.ts'
import { SimulatedDriver, type SimulatedKnobs } from '../../../src/drivers/simulated.ts'
import type { GitHubStandIn } from './github.ts'

export interface GuestBehaviour {
  /** The duration of a job. */
  jobMs: number
  /** The number of next guests that start no runner, or power off without one. */
  mute: number
  broken: number
}

export class RunnerGuests extends SimulatedDriver {
  readonly #github: GitHubStandIn
  readonly #behaviour: GuestBehaviour
  /** By name of the VM: names are unique, and a warm VM has the uid of its slot. */
  readonly #handles = new Map<string, Handle>()

  constructor(github: GitHubStandIn, behaviour: GuestBehaviour, knobs: SimulatedKnobs = {}) {
    super(knobs)
    const { claim } = this.warm
    this.warm.claim = (handle, vm) => {
      this.#handles.set(vm.name, handle)
      return claim(handle, vm)
    }
    this.#github = github
    this.#behaviour = behaviour
  }

  override async start(handle: Handle, vm: VmSpec, signal: AbortSignal): Promise<Started> {
    const started = await super.start(handle, vm, signal)
    // A first boot, even if it is started again.
    if (!this.#handles.has(vm.name)) {
      this.#handles.set(vm.name, handle)
      void this.#run(handle, Buffer.from(vm.userdata ?? '', 'base64').toString())
    }
    return started
  }

  /** As if by SSH. */
  async run(name: string, script: string): Promise<void> {
    const handle = this.#handles.get(name)
    if (!handle) throw new Error('SSH in the guest did not respond')
    void this.#run(handle, script)
  }

  async #run(handle: Handle, script: string): Promise<void> {
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
