// Apple allows two macOS VMs per host, across all users and programs. Agents of one host share a folder with a file for
// each of their macOS VMs, which names its process. VMs of other agents and of people reduce what a node offers, and a
// third VM is not started.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, readJsonFile, writeFileAtomically } from '../../platform/files.ts'
import { LockedError, withLockFile } from '../../platform/lock-file.ts'
import { everyProcess, hostBootId, isAlive, type ProcessId, startTimeOf } from '../../platform/processes.ts'
import { reasonOf } from '../../platform/reason.ts'
import { retry } from '../../platform/retry.ts'
import { succeeds } from '../../platform/succeeds.ts'
import { isSuspendable, readTartConfig } from './machine.ts'
import type { AppleRun } from './run.ts'
import { type Tart, tartFiles } from './tart.ts'

const maxMacs = 2

interface AllowanceOptions {
  /** `TART_HOME` of the user who runs the agents. It has the shared folder, and the VMs that people run by hand. */
  readonly home: string
  /** VMs below it belong to this agent. */
  readonly dataDir?: string | undefined
}

interface Share {
  readonly version: 1
  readonly folder: string
  /** tart's process, or the agent's while the VM starts or is held still for a capture. */
  readonly process: ProcessId
}

const folderName = 'svc3-macos'
const lockRetry = { attempts: Infinity, withinMs: 10_000, firstDelayMs: 20, maxDelayMs: 20 }
const listMs = 15_000
/** Names the boot of the host in which Apple's framework lost count of its VMs. */
const lostCountFile = 'lost-count'
const lostCount =
  'this Mac refuses VMs with macOS although fewer than two run: macOS has lost count of them. Drain the node, then restart ' +
  "this Mac ('sudo shutdown -r now')"
/** A process of Apple's framework for each running VM of any user and program, Linux included. */
const frameworkProcess = 'com.apple.Virtualization.VirtualMachine'

export class Allowance {
  readonly #tart: Tart
  readonly #home: string
  readonly #dataDir: string | undefined

  constructor(tart: Tart, { home, dataDir }: AllowanceOptions) {
    this.#tart = tart
    this.#home = home
    this.#dataDir = dataDir
  }

  /** The number of macOS VMs that other agents and people leave to this agent. */
  async left(): Promise<number> {
    if ((await this.refusal()) !== undefined) return 0
    const own = (folder: string) =>
      this.#dataDir !== undefined && !path.relative(this.#dataDir, folder).startsWith('..')
    const others = (await this.#shares()).filter(({ folder }) => !own(folder))
    return Math.max(0, maxMacs - others.length - (await this.#byHand()).count)
  }

  /** Reserves a share for a VM that is about to start. A VM that has a share keeps it. */
  async take(folder: string, name: string): Promise<void> {
    if (!(await this.#isCounted(folder, name))) return
    await this.#locked(async () => {
      const shares = await this.#shares()
      const own = shares.find((share) => share.name === name)
      const others = shares.length - (own ? 1 : 0) + (await this.#byHand()).count
      if (!own && others >= maxMacs)
        throw new Error(
          `this Mac runs ${others} VMs with macOS already, other agents' and those of people counted, and Apple allows ` +
            `${maxMacs}: stop one of them, then start this one again`,
        )
      await this.#write(name, folder, await thisProcess())
    })
  }

  /** Records the process of a VM that is up. A VM without a share, as after an update of svc3, gets one. */
  async hold(folder: string, { name, process }: Pick<AppleRun, 'name' | 'process'>): Promise<void> {
    if (process && (await this.#isCounted(folder, name))) await this.#write(name, folder, process)
  }

  /** Keeps the share of a VM whose process ends only to be started again. */
  async keep(folder: string, name: string): Promise<void> {
    await this.hold(folder, { name, process: await thisProcess() })
  }

  giveBack(name: string): Promise<void> {
    return fs.rm(this.#fileOf(name), { force: true })
  }

  /** Why this host starts no VM with macOS until its next boot. */
  async refusal(): Promise<string | undefined> {
    const bootId = await readFileIfPresent(path.join(this.#home, folderName, lostCountFile)).catch(() => undefined)
    return bootId === (await hostBootId()) ? lostCount : undefined
  }

  /** Explains that Apple's framework refused a VM as one too many. The VM must have given back its share. */
  async explainLimit(error: Error): Promise<Error> {
    const { count, problem } = await this.#byHand()
    if (problem !== undefined)
      return new Error(
        `${error.message}. VMs that people run here could not be counted, because 'tart list' fails: repair or delete the ` +
          `broken VM in ${path.join(this.#home, 'vms')} (${problem})`,
      )
    const processes = (await everyProcess()).filter(({ words }) =>
      words.some((word) => word.includes(frameworkProcess)),
    )
    if (Math.max((await this.#shares()).length + count, processes.length) >= maxMacs) return error
    const file = path.join(this.#home, folderName, lostCountFile)
    await writeFileAtomically(file, await hostBootId()).catch(() => undefined)
    return new Error(lostCount)
  }

  /** Whether the VM needs a share. Without the shared folder none does, and Apple's framework refuses a third VM. */
  async #isCounted(folder: string, name: string): Promise<boolean> {
    if (!isSuspendable(await readTartConfig(folder, { name }))) return false
    return succeeds(fs.mkdir(path.join(this.#home, folderName), { recursive: true, mode: 0o700 }))
  }

  #write(name: string, folder: string, process: ProcessId): Promise<void> {
    const share: Share = { version: 1, folder, process }
    return writeFileAtomically(this.#fileOf(name), `${JSON.stringify(share)}\n`)
  }

  #fileOf(name: string): string {
    return path.join(this.#home, folderName, `${name}.json`)
  }

  async #shares(): Promise<readonly (Share & { readonly name: string })[]> {
    const files = await fs.readdir(path.join(this.#home, folderName)).catch(() => [])
    const found = []
    for (const file of files.filter((each) => each.endsWith('.json'))) {
      const name = file.slice(0, -'.json'.length)
      const share = await readJsonFile<Share>(this.#fileOf(name), ({ process }) => process !== undefined)
      if (share && (await isAlive(share.process))) found.push({ ...share, name })
    }
    return found
  }

  /** Counts macOS VMs that this user runs by hand. If that fails, none count, and Apple's framework refuses a third. */
  async #byHand(): Promise<{ readonly count: number; readonly problem?: string }> {
    const vms = path.join(this.#home, 'vms')
    const isThere = await fs.readdir(vms).then((names) => names.length > 0, () => false) // biome-ignore format: one thought
    if (!isThere) return { count: 0 }
    const words = ['list', '--source', 'local', '--format', 'json']
    const listed = await this.#tart
      .inHome(this.#home, words, { timeoutMs: listMs })
      .then(({ stdout }) => JSON.parse(stdout) as readonly { Name: string; State?: string; Running?: boolean }[])
      .catch((error: unknown) => reasonOf(error))
    if (typeof listed === 'string') return { count: 0, problem: listed }
    const running = listed.filter(({ State, Running }) => Running === true || State === 'running')
    const systems = await Promise.all(running.map(({ Name }) => systemOf(path.join(vms, Name))))
    return { count: systems.filter((system) => system !== 'linux').length }
  }

  #locked(work: () => Promise<void>): Promise<void> {
    const isRetriable = (error: unknown) => error instanceof LockedError
    return retry(() => withLockFile(path.join(this.#home, folderName, 'lock'), work), {
      policy: lockRetry,
      isRetriable,
    })
  }
}

async function thisProcess(): Promise<ProcessId> {
  return { pid: process.pid, startTime: (await startTimeOf(process.pid)) ?? '' }
}

const systemOf = async (vm: string): Promise<string | undefined> =>
  (await readJsonFile<{ readonly os?: string }>(path.join(vm, tartFiles.config), () => true))?.os
