// Samples the resource usage of this node and its VMs every ten seconds. Values stay on the node until they are requested.
// Those of the last day are saved now and then, so that they survive an update of the agent.
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Handle, VmUsage } from '../../drivers/driver.ts'
import type { Clock } from '../../platform/clock.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { reasonOf } from '../../platform/reason.ts'
import { fineSeconds, Rings } from './rings.ts'

interface MeasuredVm {
  readonly handle: Handle
  readonly cores: number
}

interface MeasurementsOptions {
  readonly folder: string
  vms(): readonly MeasuredVm[]
  /** Absent if the driver does not measure. Then nothing is measured. */
  readonly usage: ((handle: Handle) => Promise<VmUsage | undefined>) | undefined
  /** Returns how often a requested image existed on this node, and how often it did not, since the start. */
  images(): { readonly hits: number; readonly misses: number }
  readonly clock: Clock
  readonly log: Log
}

const units = {
  cpu: '%',
  memory: 'B',
  diskRead: 'B/s',
  diskWrite: 'B/s',
  networkIn: 'B/s',
  networkOut: 'B/s',
  disk: 'B',
  cacheHits: '%',
} as const
type Name = keyof typeof units

const vmNames = ['cpu', 'memory', 'diskRead', 'diskWrite', 'networkIn', 'networkOut'] as const
const hostNames = ['cpu', 'memory', 'disk', 'cacheHits'] as const

/** The file of the host; those of VMs are named by their uids. */
const hostFile = 'node'
const saveEveryMs = 600_000

interface Sample<T> {
  readonly atSeconds: number
  readonly usage: T
}

type HostSample = Sample<Awaited<ReturnType<typeof hostUsage>> & ReturnType<MeasurementsOptions['images']>>

interface MeasuredHistory {
  readonly rings: Rings<Name>
  last?: Sample<VmUsage>
}

export class Measurements {
  readonly #options: MeasurementsOptions
  readonly #folder: string
  readonly #vms = new Map<string, MeasuredHistory>()
  readonly #host = new Rings<Name>(hostNames)
  #lastHost: HostSample | undefined
  #savedAtMs: number
  #loop: Loop | undefined

  private constructor(options: MeasurementsOptions) {
    this.#options = options
    this.#folder = path.join(options.folder, 'measurements')
    this.#savedAtMs = options.clock.now().getTime()
  }

  static async start(options: MeasurementsOptions): Promise<Measurements> {
    const measurements = new Measurements(options)
    if (!options.usage) return measurements
    await load(path.join(measurements.#folder, hostFile), measurements.#host)
    measurements.#loop = startLoop({
      everyMs: fineSeconds * 1_000,
      isFirstLater: true,
      run: () => measurements.sample(),
      failed: (error) => measurements.#failed(error),
    })
    return measurements
  }

  /** The last minutes of a VM (the uid of its folder) or of the host. */
  read(uid: string | undefined, minutes: number) {
    const rings = uid === undefined ? this.#host : this.#vms.get(uid)?.rings
    if (!this.#options.usage || !rings) return { stepSeconds: fineSeconds, series: [] }
    const { stepSeconds, start, values } = rings.read(this.#nowSeconds, minutes)
    const names = Object.keys(values) as Name[]
    return { stepSeconds, series: names.map((name) => ({ name, unit: units[name], start, values: values[name] })) }
  }

  async sample(): Promise<void> {
    await this.#sampleHost()
    const vms = this.#options.vms()
    for (const vm of vms) await this.#sampleVm(vm)
    const existing = new Set(vms.map(({ handle }) => handle.uid))
    for (const uid of this.#vms.keys())
      if (!existing.has(uid)) {
        this.#vms.delete(uid)
        await fs.rm(path.join(this.#folder, uid), { force: true })
      }
    if (this.#options.clock.now().getTime() - this.#savedAtMs >= saveEveryMs) await this.#save()
  }

  async stop(): Promise<void> {
    await this.#loop?.stop()
    if (this.#options.usage) await this.#save().catch((error: unknown) => this.#failed(error))
  }

  get #nowSeconds(): number {
    return this.#options.clock.now().getTime() / 1_000
  }

  #failed(error: unknown): void {
    this.#options.log.warn('failed to keep measurements', { folder: this.#folder, problem: reasonOf(error) })
  }

  async #sampleVm({ handle, cores }: MeasuredVm): Promise<void> {
    const usage = await this.#options.usage?.(handle).catch((error: unknown) => {
      this.#options.log.debug('a VM could not be measured', { name: handle.uid, problem: reasonOf(error) })
      return undefined
    })
    const history = await this.#historyOf(handle.uid)
    const { last } = history
    const atSeconds = this.#nowSeconds
    delete history.last
    if (!usage) return
    history.last = { atSeconds, usage }
    const perSecond = (field: keyof VmUsage): number | undefined =>
      last && rate(usage[field], last.usage[field], atSeconds - last.atSeconds)
    const cpu = perSecond('cpuSeconds')
    history.rings.add(
      atSeconds,
      defined({
        cpu: cpu === undefined ? undefined : (100 * cpu) / Math.max(1, cores),
        memory: usage.memoryBytes,
        diskRead: perSecond('diskReadBytes'),
        diskWrite: perSecond('diskWrittenBytes'),
        networkIn: perSecond('networkInBytes'),
        networkOut: perSecond('networkOutBytes'),
      }),
    )
  }

  async #sampleHost(): Promise<void> {
    const usage = { ...(await hostUsage(this.#options.folder)), ...this.#options.images() }
    const atSeconds = this.#nowSeconds
    const last = this.#lastHost
    this.#lastHost = { atSeconds, usage }
    const busy = last && rate(usage.busySeconds, last.usage.busySeconds, atSeconds - last.atSeconds)
    const hits = usage.hits - (last?.usage.hits ?? 0)
    const misses = usage.misses - (last?.usage.misses ?? 0)
    this.#host.add(
      atSeconds,
      defined({
        cpu: busy === undefined ? undefined : Math.min(100, (100 * busy) / usage.cores),
        memory: usage.memoryBytes,
        disk: usage.diskBytes,
        cacheHits: hits + misses === 0 ? undefined : (100 * hits) / (hits + misses),
      }),
    )
  }

  async #historyOf(uid: string): Promise<MeasuredHistory> {
    const known = this.#vms.get(uid)
    if (known) return known
    const history = { rings: new Rings<Name>(vmNames) }
    await load(path.join(this.#folder, uid), history.rings)
    this.#vms.set(uid, history)
    return history
  }

  async #save(): Promise<void> {
    this.#savedAtMs = this.#options.clock.now().getTime()
    await fs.mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const all = new Map([[hostFile, this.#host]])
    for (const [uid, { rings }] of this.#vms) all.set(uid, rings)
    for (const [name, rings] of all)
      await writeFileAtomically(path.join(this.#folder, name), JSON.stringify(rings.save(this.#nowSeconds)))
    // Deletes files of VMs that were removed while no agent ran. Not done at the start, before the agent has found its VMs.
    const current = new Set([hostFile, ...this.#options.vms().map(({ handle }) => handle.uid)])
    for (const name of await fs.readdir(this.#folder))
      if (!current.has(name)) await fs.rm(path.join(this.#folder, name), { force: true })
  }
}

/** The resource usage of the host, including all other programs. */
async function hostUsage(folder: string) {
  const cores = os.cpus()
  const busyMs = cores.reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)
  const { blocks, bfree, bsize } = await fs.statfs(folder)
  return {
    busySeconds: busyMs / 1_000,
    cores: Math.max(1, cores.length),
    memoryBytes: os.totalmem() - os.freemem(),
    diskBytes: (blocks - bfree) * bsize,
  }
}

/** The growth of a counter per second; undefined if the counter was reset. */
const rate = (now: number | undefined, before: number | undefined, seconds: number): number | undefined =>
  now === undefined || before === undefined || now < before || seconds <= 0 ? undefined : (now - before) / seconds

type Values = Readonly<Partial<Record<Name, number>>>
const defined = (values: Readonly<Partial<Record<Name, number | undefined>>>): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

/** An unreadable file is deleted without a message, because it has only a day of measurements. */
async function load(file: string, rings: Rings<Name>): Promise<void> {
  const text = await readFileIfPresent(file).catch(() => undefined)
  if (text === undefined) return
  try {
    rings.load(JSON.parse(text))
  } catch {
    await fs.rm(file, { force: true })
  }
}
