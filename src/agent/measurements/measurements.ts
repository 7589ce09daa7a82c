// Samples what the VMs of this node and the node itself use, every ten seconds. Nobody is told: it is read when somebody
// looks. A day of minutes is saved to small files now and then, so that an agent that is updated has it again.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Handle, VmUsage } from '../../drivers/driver.ts'
import type { Clock } from '../../platform/clock.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { Log } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { reasonOf } from '../../platform/reason.ts'
import { hostUsage } from './host-usage.ts'
import { fineSeconds, Rings } from './rings.ts'

interface MeasuredVm {
  readonly handle: Handle
  readonly cores: number
}

interface MeasurementsOptions {
  readonly folder: string
  /** All VMs on this node. */
  vms(): readonly MeasuredVm[]
  /** Absent where the driver measures nothing: then nothing is. */
  readonly usage: ((handle: Handle) => Promise<VmUsage | undefined>) | undefined
  /** How often an image was wanted, and was here; since the start. */
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

/** In the folder of measurements, beside those of VMs, which are called by their ids. */
const hostFile = 'node'
const saveEveryMs = 600_000

interface MeasuredSeries {
  readonly stepSeconds: number
  readonly series: readonly {
    readonly name: Name
    readonly unit: (typeof units)[Name]
    readonly start: number
    readonly values: readonly (number | null)[]
  }[]
}

interface Measurements {
  /** Of a VM, by the id of its folder, or of the host. */
  read(uid: string | undefined, minutes: number): MeasuredSeries
  /** One round now: tests call it. */
  sample(): Promise<void>
  stop(): Promise<void>
}

interface Last<T> {
  readonly atSeconds: number
  readonly usage: T
}

interface Kept {
  readonly rings: Rings<Name>
  last?: Last<VmUsage>
}

/** How much a counter grew in a second; one that began anew says nothing. */
const rate = (now: number | undefined, before: number | undefined, seconds: number): number | undefined =>
  now === undefined || before === undefined || now < before ? undefined : (now - before) / seconds

const percent = (part: number | undefined): number | undefined => (part === undefined ? undefined : part * 100)

type Values = Readonly<Partial<Record<Name, number>>>
const defined = (values: Readonly<Partial<Record<Name, number | undefined>>>): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

export async function startMeasurements(options: MeasurementsOptions): Promise<Measurements> {
  const { vms, usage, images, clock, log } = options
  const folder = path.join(options.folder, 'measurements')
  const rings = new Map<string, Kept>()
  const host = new Rings<Name>(hostNames)
  let lastHost: Last<Awaited<ReturnType<typeof hostUsage>> & ReturnType<typeof images>> | undefined
  let savedAtMs = clock.now().getTime()
  const nowSeconds = (): number => clock.now().getTime() / 1_000

  const ringsOf = async (uid: string): Promise<Kept> => {
    const known = rings.get(uid)
    if (known) return known
    const made: Kept = { rings: new Rings<Name>(vmNames) }
    await load(path.join(folder, uid), made.rings)
    rings.set(uid, made)
    return made
  }

  const sampleVm = async ({ handle, cores }: MeasuredVm): Promise<void> => {
    const found = await usage?.(handle).catch((error: unknown) => {
      log.debug('a VM could not be measured', { name: handle.uid, problem: reasonOf(error) })
      return undefined
    })
    const kept = await ringsOf(handle.uid)
    const { last } = kept
    const atSeconds = nowSeconds()
    if (!found) {
      delete kept.last
      return
    }
    kept.last = { atSeconds, usage: found }
    const seconds = last ? atSeconds - last.atSeconds : 0
    const before = seconds > 0 ? last?.usage : undefined
    const perSecond = (field: keyof VmUsage): number | undefined => rate(found[field], before?.[field], seconds)
    const cpu = percent(perSecond('cpuSeconds'))
    kept.rings.add(
      atSeconds,
      defined({
        cpu: cpu === undefined ? undefined : cpu / Math.max(1, cores),
        memory: found.memoryBytes,
        diskRead: perSecond('diskReadBytes'),
        diskWrite: perSecond('diskWrittenBytes'),
        networkIn: perSecond('networkInBytes'),
        networkOut: perSecond('networkOutBytes'),
      }),
    )
  }

  const sampleHost = async (): Promise<void> => {
    const now = { ...(await hostUsage(options.folder)), ...images() }
    const atSeconds = nowSeconds()
    const last = lastHost
    lastHost = { atSeconds, usage: now }
    const seconds = last ? atSeconds - last.atSeconds : 0
    const busy = seconds > 0 ? rate(now.busySeconds, last?.usage.busySeconds, seconds) : undefined
    const hits = now.hits - (last?.usage.hits ?? 0)
    const misses = now.misses - (last?.usage.misses ?? 0)
    host.add(
      atSeconds,
      defined({
        cpu: busy === undefined ? undefined : Math.min(100, (busy / now.cores) * 100),
        memory: now.memoryBytes,
        disk: now.diskBytes,
        cacheHits: hits + misses === 0 ? undefined : (hits / (hits + misses)) * 100,
      }),
    )
  }

  const sample = async (): Promise<void> => {
    await sampleHost()
    const all = vms()
    for (const vm of all) await sampleVm(vm)
    const here = new Set(all.map(({ handle }) => handle.uid))
    for (const uid of rings.keys())
      if (!here.has(uid)) {
        rings.delete(uid)
        await fs.rm(path.join(folder, uid), { force: true })
      }
    if (clock.now().getTime() - savedAtMs < saveEveryMs) return
    await save()
  }

  const save = async (): Promise<void> => {
    savedAtMs = clock.now().getTime()
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    const write = (name: string, each: Rings<Name>): Promise<void> =>
      writeFileAtomically(path.join(folder, name), JSON.stringify(each.save(nowSeconds())))
    await write(hostFile, host)
    for (const [uid, { rings: each }] of rings) await write(uid, each)
    // Not at the start, when the agent has yet to find its VMs.
    await forgetOthers(folder, new Set([hostFile, ...vms().map(({ handle }) => handle.uid)]))
  }

  const failed = (error: unknown): void => log.warn('failed to keep measurements', { folder, problem: reasonOf(error) })
  if (usage) await load(path.join(folder, hostFile), host)
  const loop = usage && startLoop({ everyMs: fineSeconds * 1_000, isFirstLater: true, run: sample, failed })
  return {
    read(uid, minutes) {
      const kept = uid === undefined ? host : rings.get(uid)?.rings
      if (!usage || !kept) return { stepSeconds: fineSeconds, series: [] }
      const { stepSeconds, start, values } = kept.read(nowSeconds(), minutes)
      const names = Object.keys(values) as Name[]
      return { stepSeconds, series: names.map((name) => ({ name, unit: units[name], start, values: values[name] })) }
    },
    sample,
    async stop() {
      await loop?.stop()
      if (usage) await save().catch(failed)
    },
  }
}

/** What cannot be read is not worth a word: it is a day of measurements. */
async function load(file: string, rings: Rings<Name>): Promise<void> {
  const text = await readFileIfPresent(file).catch(() => undefined)
  if (text === undefined) return
  try {
    rings.load(JSON.parse(text))
  } catch {
    await fs.rm(file, { force: true })
  }
}

/** Of VMs that went while no agent ran. */
async function forgetOthers(folder: string, kept: ReadonlySet<string>): Promise<void> {
  for (const name of await fs.readdir(folder).catch(() => []))
    if (!kept.has(name)) await fs.rm(path.join(folder, name), { force: true })
}
