// Apple lets two VMs with macOS run on a host, whoever runs them. Agents of one host share a folder in which each of their VMs
// that runs macOS has a file with its process: what others run is taken off what a node offers, and a third one is not begun.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import { LockedError, withLockFile } from '../../platform/lock-file.ts'
import { isAlive, type ProcessId, startTimeOf } from '../../platform/processes.ts'
import { isSuspendable, readTartConfig } from './machine.ts'
import type { AppleRun } from './run.ts'
import { type Tart, tartFiles } from './tart.ts'

const maxMacs = 2

interface AllowanceOptions {
  /** `TART_HOME` of who runs the agents: the folder is in there, and VMs that people run by hand. */
  readonly home: string
  /** What is below it is this agent's own. */
  readonly dataDir?: string | undefined
}

/** What is known of one VM that has a part of it. */
interface Share {
  readonly version: 1
  readonly folder: string
  /** tart's; while it starts, or stands still for a capture, the agent's. */
  readonly process: ProcessId
}

const folderName = 'svc3-macos'
const lockMs = 10_000
const pauseMs = 20
const listMs = 15_000

export class Allowance {
  readonly #tart: Tart
  readonly #home: string
  readonly #dataDir: string | undefined

  constructor(tart: Tart, { home, dataDir }: AllowanceOptions) {
    this.#tart = tart
    this.#home = home
    this.#dataDir = dataDir
  }

  /** What VMs leave that are not of this agent. */
  async left(): Promise<number> {
    const own = (folder: string) =>
      this.#dataDir !== undefined && !path.relative(this.#dataDir, folder).startsWith('..')
    const others = (await this.#shares()).filter(({ folder }) => !own(folder))
    return Math.max(0, maxMacs - others.length - (await this.#byHand()))
  }

  /** For a VM that is about to start. What it has already it keeps. */
  async take(folder: string, name: string): Promise<void> {
    if (!(await this.#isCounted(folder, name))) return
    await this.#locked(async () => {
      const shares = await this.#shares()
      const own = shares.find((share) => share.name === name)
      const others = shares.length - (own ? 1 : 0) + (await this.#byHand())
      if (!own && others >= maxMacs)
        throw new Error(
          `this Mac runs ${others} VMs with macOS already, other agents' and those of people counted, and Apple allows ` +
            `${maxMacs}: stop one of them, then start this one again`,
        )
      await this.#write(name, folder, await thisProcess())
    })
  }

  /** The VM is up as this process. Not there yet, as after an update of svc3: from now on it is. */
  async hold(folder: string, { name, process }: Pick<AppleRun, 'name' | 'process'>): Promise<void> {
    if (process && (await this.#isCounted(folder, name))) await this.#write(name, folder, process)
  }

  /** Its process ends, and it goes on soon: nobody else is to have its part. */
  async keep(folder: string, name: string): Promise<void> {
    await this.hold(folder, { name, process: await thisProcess() })
  }

  giveBack(name: string): Promise<void> {
    return fs.rm(this.#fileOf(name), { force: true })
  }

  /** Where the folder cannot be made, nobody knows of others, and Apple's framework is who refuses. */
  async #isCounted(folder: string, name: string): Promise<boolean> {
    if (!isSuspendable(await readTartConfig(folder, { name }))) return false
    return fs.mkdir(path.join(this.#home, folderName), { recursive: true, mode: 0o700 }).then(
      () => true,
      () => false,
    )
  }

  #write(name: string, folder: string, process: ProcessId): Promise<void> {
    const share: Share = { version: 1, folder, process }
    return writeFileAtomically(this.#fileOf(name), `${JSON.stringify(share)}\n`)
  }

  #fileOf(name: string): string {
    return path.join(this.#home, folderName, `${name}.json`)
  }

  /** Of processes that live. */
  async #shares(): Promise<readonly (Share & { readonly name: string })[]> {
    const files = await fs.readdir(path.join(this.#home, folderName)).catch(() => [])
    const found = []
    for (const file of files.filter((each) => each.endsWith('.json'))) {
      const name = file.slice(0, -'.json'.length)
      const share = await this.#read(name)
      if (share && (await isAlive(share.process))) found.push({ ...share, name })
    }
    return found
  }

  async #read(name: string): Promise<Share | undefined> {
    try {
      return JSON.parse((await readFileIfPresent(this.#fileOf(name))) ?? '') as Share
    } catch {
      return undefined
    }
  }

  /** VMs that people run with tart themselves, as the same user. What cannot be asked is met when tart refuses. */
  async #byHand(): Promise<number> {
    const vms = path.join(this.#home, 'vms')
    const isThere = await fs.readdir(vms).then((names) => names.length > 0, () => false) // biome-ignore format: one thought
    if (!isThere) return 0
    const words = ['list', '--source', 'local', '--format', 'json']
    const listed = await this.#tart
      .inHome(this.#home, words, { timeoutMs: listMs })
      .then(({ stdout }) => JSON.parse(stdout) as readonly { Name: string; State?: string; Running?: boolean }[])
      .catch(() => [])
    const running = listed.filter(({ State, Running }) => Running === true || State === 'running')
    const systems = await Promise.all(running.map(({ Name }) => systemOf(path.join(vms, Name))))
    return systems.filter((system) => system !== 'linux').length
  }

  async #locked(work: () => Promise<void>): Promise<void> {
    const untilMs = performance.now() + lockMs
    for (;;) {
      try {
        return await withLockFile(path.join(this.#home, folderName, 'lock'), work)
      } catch (error) {
        if (!(error instanceof LockedError) || performance.now() > untilMs) throw error
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    }
  }
}

async function thisProcess(): Promise<ProcessId> {
  return { pid: process.pid, startTime: (await startTimeOf(process.pid)) ?? '' }
}

async function systemOf(vm: string): Promise<string | undefined> {
  const text = await readFileIfPresent(path.join(vm, tartFiles.config)).catch(() => undefined)
  try {
    return (JSON.parse(text ?? '{}') as { os?: string }).os
  } catch {
    return undefined
  }
}
