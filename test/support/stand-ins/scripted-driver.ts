// A driver for tests of the agent. Calls succeed at once unless a test makes one fail or wait, or lets a guest change by
// itself. Its VMs outlive the driver, as processes outlive the agent.
import type { Driver, Handle, Observed, VmSpec } from '../../../src/drivers/driver.ts'

interface ScriptedVm {
  observed: Observed
  diskBytes: number
  /** Increases with every new disk. */
  disk: number
  spec: VmSpec
}

export class World {
  readonly vms = new Map<string, ScriptedVm>()
  /** All calls, such as `start uid`. */
  readonly calls: string[] = []
  /** Never two of them on one disk. */
  starts = 0
  readonly #plans = new Map<string, (signal?: AbortSignal) => Promise<void>>()
  readonly #followers = new Map<string, Set<() => void>>()

  /** The next call of this name fails. */
  failNext(call: string, error: Error): void {
    this.#plans.set(call, async () => {
      this.#plans.delete(call)
      throw error
    })
  }

  /** Calls of this name wait until released or aborted. `reached` resolves when one waits. */
  block(call: string): { readonly reached: Promise<void>; release(): void } {
    const reached = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    this.#plans.set(call, async (signal) => {
      reached.resolve()
      signal?.addEventListener('abort', () => released.reject(signal.reason))
      await released.promise
    })
    return {
      reached: reached.promise,
      release: () => {
        this.#plans.delete(call)
        released.resolve()
      },
    }
  }

  /** Later calls of this name do not wait; waiting ones keep waiting. */
  unblock(call: string): void {
    this.#plans.delete(call)
  }

  /** The guest or the host changes the VM. */
  becomes(uid: string, observed: Observed): void {
    const vm = this.vms.get(uid)
    if (!vm) throw new Error(`there is no VM ${uid}`)
    vm.observed = observed
    for (const changed of this.#followers.get(uid) ?? []) changed()
  }

  count(call: string): number {
    return this.calls.filter((one) => one === call).length
  }

  async enter(call: string, uid: string, signal?: AbortSignal): Promise<void> {
    this.calls.push(`${call} ${uid}`)
    await this.#plans.get(call)?.(signal)
  }

  follow(uid: string, changed: () => void): () => void {
    const followers = this.#followers.get(uid) ?? new Set()
    this.#followers.set(uid, followers.add(changed))
    return () => void followers.delete(changed)
  }
}

/** Drivers with another name than `simulated` need images. */
export function scriptedDriver(world: World, name = 'simulated'): Driver {
  const get = ({ uid }: Handle): ScriptedVm => {
    const vm = world.vms.get(uid)
    if (!vm) throw new Error(`the disk of ${uid} is missing`)
    return vm
  }
  const diskOf = ({ diskBytes, image }: VmSpec): number => diskBytes ?? image.virtualSizeBytes
  return {
    name,
    ...(name === 'simulated' && { isSimulation: true as const }),
    probe: async () => ({ ok: true, version: 'scripted', architectures: ['amd64', 'arm64'] }),
    async create(spec, folder) {
      await world.enter('create', spec.uid)
      const made: ScriptedVm = { observed: { state: 'stopped' }, diskBytes: diskOf(spec), disk: 1, spec }
      if (!world.vms.has(spec.uid)) world.vms.set(spec.uid, made)
      return { version: 1, driver: name, uid: spec.uid, folder }
    },
    async start(handle, spec, signal) {
      await world.enter('start', handle.uid, signal)
      world.starts++
      get(handle).spec = spec
      world.becomes(handle.uid, { state: 'running' })
      return {}
    },
    async stop(handle, { graceSeconds }) {
      await world.enter(graceSeconds === 0 ? 'kill' : 'stop', handle.uid)
      world.becomes(handle.uid, { state: 'stopped' })
    },
    async destroy({ uid }) {
      await world.enter('destroy', uid)
      world.vms.delete(uid)
    },
    async inspect({ uid }) {
      return world.vms.get(uid)?.observed ?? { state: 'absent' }
    },
    follow: ({ uid }, changed) => world.follow(uid, changed),
    close: async () => undefined,
    suspension: {
      async suspend(handle) {
        await world.enter('suspend', handle.uid)
        world.becomes(handle.uid, { state: 'suspended' })
      },
      async resume(handle) {
        await world.enter('resume', handle.uid)
        world.becomes(handle.uid, { state: 'running' })
      },
    },
    resizing: {
      async grow(handle, diskBytes) {
        await world.enter('grow', handle.uid)
        get(handle).diskBytes = diskBytes
      },
      diskBytes: async (handle) => get(handle).diskBytes,
    },
    reverting: {
      async revert(handle, spec) {
        await world.enter('revert', handle.uid)
        const vm = get(handle)
        vm.disk++
        vm.diskBytes = diskOf(spec)
      },
      base: async (handle) => get(handle).spec.image.digest,
    },
    console: { log: ({ folder }) => `${folder}/console.log` },
  }
}
