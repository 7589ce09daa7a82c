// A driver without a hypervisor: it behaves like one and runs nothing. For trying svc3 and CI integrations on any machine,
// and for load tests. Its VMs survive the agent in a file beside their folders.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GuestReach } from '../api/vms/guest-reach.ts'
import { KeyedLog } from '../platform/keyed-log.ts'
import { exclusively } from '../platform/parallel.ts'
import { hostBootId } from '../platform/processes.ts'
import {
  type BootingVm,
  type Capture,
  type CaptureOptions,
  type Driver,
  type Handle,
  type Observed,
  PortTaken,
  type Probe,
  type Started,
  type StopOptions,
  type VmSpec,
} from './driver.ts'
import { cannotShrink, mustBeStopped, otherImage } from './refusals.ts'

type SimulatedStep =
  | 'create'
  | 'start'
  | 'stop'
  | 'destroy'
  | 'suspend'
  | 'resume'
  | 'grow'
  | 'revert'
  | 'capture'
  | 'claim'

export interface SimulatedKnobs {
  readonly bootMs?: number
  readonly stopMs?: number
  /** A probability between 0 and 1, or `once` for the next time only. */
  readonly failAt?: Readonly<Partial<Record<SimulatedStep, number | 'once'>>>
  readonly maxVms?: number
  readonly architectures?: Probe['architectures']
  /** What is told of every running VM. */
  readonly reach?: GuestReach
}

interface SimulatedVm {
  /** The name of the VM at its last start or claim. */
  readonly name?: string
  readonly power: 'stopped' | 'running' | 'suspended' | 'failed'
  readonly problem?: string
  readonly bootId: string
  readonly diskBytes: number
  readonly digest: string
  /** `ip:port/protocol` of a running VM. */
  readonly ports: readonly string[]
  /** Captures that were not released. */
  readonly captures?: readonly Capture[]
}

const simulatedReach: GuestReach = { ok: true, message: 'Simulated: no guest runs in the VM' }

const done = { suspend: 'suspended', resume: 'resumed' } as const

export class SimulatedDriver implements Driver {
  readonly name = 'simulated'
  readonly isSimulation = true
  readonly #knobs: SimulatedKnobs
  readonly #failedOnce = new Set<SimulatedStep>()
  /** By the parent of the VMs' folders. */
  readonly #vms = new Map<string, KeyedLog<SimulatedVm>>()
  readonly #listeners = new Map<string, Set<() => void>>()

  constructor(knobs: SimulatedKnobs = {}) {
    this.#knobs = knobs
  }

  async probe(): Promise<Probe> {
    const { maxVms, architectures = ['amd64', 'arm64'] } = this.#knobs
    return { ok: true, version: 'simulated', architectures, ...(maxVms !== undefined && { maxVms }) }
  }

  create(vm: VmSpec, folder: string): Promise<Handle> {
    return exclusively(folder, async () => {
      this.#maybeFail('create')
      if (!(await this.#read(folder))) await this.#write(folder, await this.#fresh(vm))
      return { version: 1, driver: this.name, uid: vm.uid, folder }
    })
  }

  start({ folder }: Handle, vm: VmSpec, signal: AbortSignal): Promise<Started> {
    return exclusively(folder, async () => {
      signal.throwIfAborted()
      const now = await this.#required(folder)
      const bootId = await hostBootId()
      if (now.power === 'running' && now.bootId === bootId) return {}
      if (now.digest !== vm.image.digest) throw otherImage(vm.image, now.digest)
      const ports = portsOf(vm)
      requireFree(ports, folder)
      if (this.#knobs.bootMs) await sleep(this.#knobs.bootMs, undefined, { signal })
      this.#maybeFail('start')
      for (const port of ports) portsInUse.set(port, folder)
      const { problem: _, ...rest } = now
      await this.#write(folder, { ...rest, name: vm.name, power: 'running', bootId, ports })
      return {}
    })
  }

  stop({ folder }: Handle, { signal }: StopOptions): Promise<void> {
    return exclusively(folder, async () => {
      const now = await this.#read(folder)
      if (!now || now.power === 'stopped') return
      // Aborting ends the grace period; the VM is stopped all the same.
      if (this.#knobs.stopMs) await sleep(this.#knobs.stopMs, undefined, signal && { signal }).catch(() => undefined)
      this.#maybeFail('stop')
      release(now)
      const { problem: _, ...rest } = now
      await this.#write(folder, { ...rest, power: 'stopped', ports: [] })
    })
  }

  destroy({ folder }: Handle): Promise<void> {
    return exclusively(folder, async () => {
      this.#maybeFail('destroy')
      const now = await this.#read(folder)
      if (now) release(now)
      // The folder exists if its console was read.
      if (existsSync(folder)) rmSync(folder, { recursive: true })
      const vms = await this.#vmsBeside(folder)
      vms.delete(path.basename(folder))
      this.#notify(folder)
    })
  }

  async inspect({ folder }: Handle): Promise<Observed> {
    const now = await this.#read(folder)
    if (!now) return { state: 'absent' }
    const { power, problem = 'for an unknown reason' } = now
    if (power === 'failed') return { state: 'failed', problem }
    return { state: power === 'stopped' || now.bootId === (await hostBootId()) ? power : 'gone' }
  }

  follow({ folder }: Handle, changed: () => void): () => void {
    const listeners = this.#listeners.get(folder) ?? new Set()
    this.#listeners.set(folder, listeners)
    listeners.add(changed)
    return () => {
      listeners.delete(changed)
      if (listeners.size === 0 && this.#listeners.get(folder) === listeners) this.#listeners.delete(folder)
    }
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    for (const [parent, vms] of this.#vms) {
      vms.close()
      this.#vms.delete(parent)
    }
  }

  /** For tests, instead of killing a process. */
  crash({ folder }: Handle, problem: string): Promise<void> {
    return exclusively(folder, async () => {
      const now = await this.#required(folder)
      release(now)
      await this.#write(folder, { ...now, power: 'failed', problem, ports: [] })
    })
  }

  readonly suspension = {
    suspend: ({ folder }: Handle) => this.#turn('suspend', folder, 'running', 'suspended'),
    resume: ({ folder }: Handle) => this.#turn('resume', folder, 'suspended', 'running'),
  }

  readonly resizing = {
    grow: ({ folder }: Handle, diskBytes: number) =>
      exclusively(folder, async (): Promise<undefined> => {
        const now = await this.#stopped(folder)
        this.#maybeFail('grow')
        if (diskBytes < now.diskBytes) throw cannotShrink(now.diskBytes, diskBytes)
        if (diskBytes !== now.diskBytes) await this.#write(folder, { ...now, diskBytes })
      }),
    diskBytes: async ({ folder }: Handle) => (await this.#required(folder)).diskBytes,
  }

  readonly reverting = {
    revert: ({ folder }: Handle, vm: VmSpec) =>
      exclusively(folder, async () => {
        await this.#stopped(folder)
        this.#maybeFail('revert')
        const { captures = [] } = await this.#required(folder)
        await this.#write(folder, { ...(await this.#fresh(vm)), captures })
      }),
    base: async ({ folder }: Handle) => (await this.#required(folder)).digest,
  }

  readonly capturing = {
    /** The capture has no layers, because simulated guests write nothing. */
    capture: (
      { folder }: Handle,
      _: VmSpec,
      { id, withMemory }: CaptureOptions,
      signal: AbortSignal,
    ): Promise<Capture> =>
      exclusively(folder, async () => {
        signal.throwIfAborted()
        const { captures = [], ...now } = await this.#required(folder)
        const known = captures.find((one) => one.id === id)
        if (known) return known
        this.#maybeFail('capture')
        const capture: Capture = {
          id,
          base: now.digest,
          layers: [],
          virtualSizeBytes: now.diskBytes,
          ...(withMemory && { note: 'The memory of the VM was not saved: simulated VMs have none' }),
        }
        await this.#write(folder, { ...now, captures: [...captures, capture] })
        return capture
      }),
    release: ({ folder }: Handle, id: string): Promise<void> =>
      exclusively(folder, async () => {
        const now = await this.#read(folder)
        const { captures = [] } = now ?? {}
        if (now && captures.some((one) => one.id === id))
          await this.#write(folder, { ...now, captures: captures.filter((one) => one.id !== id) })
      }),
    list: async ({ folder }: Handle) => (await this.#read(folder))?.captures ?? [],
  }

  readonly reach = { last: (): GuestReach => this.#knobs.reach ?? simulatedReach }

  readonly warm = {
    /** Does not run the command. Every command passes, except `false`. */
    prepare: async (_: Handle, { readyCommand }: BootingVm): Promise<boolean> => readyCommand !== 'false',
    park: this.suspension.suspend,
    claim: ({ folder }: Handle, vm: VmSpec): Promise<Started> =>
      exclusively(folder, async () => {
        const now = await this.#required(folder)
        if (now.power !== 'running' && now.power !== 'suspended') throw new Error('the VM is not running')
        const ports = portsOf(vm)
        requireFree(ports, folder)
        this.#maybeFail('claim')
        release(now)
        for (const port of ports) portsInUse.set(port, folder)
        await this.#write(folder, { ...now, name: vm.name, power: 'running', ports })
        return {}
      }),
  }

  readonly console = {
    log: ({ folder }: Handle): string => {
      const file = path.join(folder, 'console.log')
      const name = this.#vms.get(path.dirname(folder))?.get(path.basename(folder))?.name
      // Created for the first reader, because few simulated VMs have one.
      if (name !== undefined && !existsSync(file)) {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        writeFileSync(file, `simulated: ${name} is up; nothing runs in here\n`, { mode: 0o600 })
      }
      return file
    },
  }

  async #turn(step: 'suspend' | 'resume', folder: string, from: SimulatedVm['power'], to: SimulatedVm['power']) {
    await exclusively(folder, async () => {
      const now = await this.#required(folder)
      if (now.power === to) return
      if (now.power !== from) throw new Error(`the VM is not running and cannot be ${done[step]}`)
      this.#maybeFail(step)
      await this.#write(folder, { ...now, power: to })
    })
  }

  async #fresh({ image, diskBytes = 0 }: VmSpec): Promise<SimulatedVm> {
    const size = Math.max(image.virtualSizeBytes, diskBytes)
    return { power: 'stopped', bootId: await hostBootId(), diskBytes: size, digest: image.digest, ports: [] }
  }

  async #stopped(folder: string): Promise<SimulatedVm> {
    const now = await this.#required(folder)
    if (now.power === 'running' || now.power === 'suspended') throw mustBeStopped()
    return now
  }

  async #required(folder: string): Promise<SimulatedVm> {
    const now = await this.#read(folder)
    if (!now) throw new Error(`there is no simulated VM in ${folder}: create it first`)
    return now
  }

  async #read(folder: string): Promise<SimulatedVm | undefined> {
    return (await this.#vmsBeside(folder)).get(path.basename(folder))
  }

  /** Not fsynced: simulated VMs do not survive the host. */
  async #write(folder: string, vm: SimulatedVm): Promise<void> {
    const vms = await this.#vmsBeside(folder)
    vms.set(path.basename(folder), vm)
    this.#notify(folder)
  }

  /** Returns the VMs of the parent folder. They are read only once, because this process is the only writer. */
  #vmsBeside(folder: string): KeyedLog<SimulatedVm> | Promise<KeyedLog<SimulatedVm>> {
    const parent = path.dirname(folder)
    return this.#vms.get(parent) ?? this.#open(parent)
  }

  async #open(parent: string): Promise<KeyedLog<SimulatedVm>> {
    const bootId = await hostBootId()
    const known = this.#vms.get(parent)
    if (known) return known
    const vms = new KeyedLog<SimulatedVm>(parent, 'simulated')
    this.#vms.set(parent, vms)
    for (const [name, vm] of vms)
      if (vm.bootId === bootId) for (const port of vm.ports) portsInUse.set(port, path.join(parent, name))
    return vms
  }

  #maybeFail(step: SimulatedStep): void {
    const chance = this.#knobs.failAt?.[step]
    if (chance === undefined || this.#failedOnce.has(step)) return
    if (chance === 'once') this.#failedOnce.add(step)
    else if (Math.random() >= chance) return
    throw new Error(`simulated failure at ${step}`)
  }

  #notify(folder: string): void {
    for (const changed of this.#listeners.get(folder) ?? []) changed()
  }
}

/** Which VM has which port, for all simulated drivers of this process, because nodes may share an address. */
const portsInUse = new Map<string, string>()

const portsOf = ({ ip, forwards, screen }: VmSpec): readonly string[] => [
  ...forwards.map(({ protocol, hostPort }) => `${ip}:${hostPort}/${protocol}`),
  ...(screen ? [`${ip}:${screen.port}/tcp`] : []),
]

function requireFree(ports: readonly string[], folder: string): void {
  const taken = ports.filter((port) => (portsInUse.get(port) ?? folder) !== folder)
  if (taken.length > 0) throw new PortTaken(taken.map((port) => Number(/:(\d+)\//.exec(port)?.[1])))
}

function release({ ports }: SimulatedVm): void {
  for (const port of ports) portsInUse.delete(port)
}
