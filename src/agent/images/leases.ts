// Leases on copies of images, as files beside them, because agents of one host may share the folder. A process that wants to
// use or to remove a copy writes its own file first and then looks for files of the other kind, so at least one of two
// processes sees the other: the one that removes gives up, the one that uses waits. Files of dead processes are ignored.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { ifAbsent } from '../../platform/files.ts'
import { stampOf } from '../../platform/processes.ts'

type Intent = 'use' | 'remove'

interface Lease {
  readonly key: string
  readonly intent: Intent
}

const pattern = /^(.+)\.(use|remove)\.(\d+)-([0-9a-f]{16})\.[0-9a-f]{12}$/
/** How often to check whether a removal, which is one rename, has ended. */
const pollMs = 5
let ownStamp: Promise<string> | undefined

export class Leases {
  readonly #folder: string

  constructor(imageFolder: string) {
    this.#folder = path.join(imageFolder, 'leases')
  }

  /** The copy, or one that is made from now on, stays until the returned function is called. */
  async take(key: string): Promise<() => Promise<void>> {
    const release = await this.#write(key, 'use')
    try {
      while (await this.#has(key, 'remove')) await setTimeout(pollMs)
      return release
    } catch (error) {
      await release()
      throw error
    }
  }

  /** Calls `remove` and returns true, unless the copy is leased or `isAllowed` forbids it. `take` waits for the end. */
  async remove(key: string, isAllowed: () => Promise<boolean>, remove: () => Promise<void>): Promise<boolean> {
    const release = await this.#write(key, 'remove')
    try {
      if ((await this.#has(key, 'use')) || !(await isAllowed())) return false
      await remove()
      return true
    } finally {
      await release()
    }
  }

  async taken(): Promise<Set<string>> {
    return new Set((await this.#list()).filter(({ intent }) => intent === 'use').map(({ key }) => key))
  }

  async #write(key: string, intent: Intent): Promise<() => Promise<void>> {
    ownStamp ??= stampOf(process.pid)
    const owner = `${process.pid}-${await ownStamp}`
    const file = path.join(
      this.#folder,
      `${encodeURIComponent(key)}.${intent}.${owner}.${randomBytes(6).toString('hex')}`,
    )
    await fs.mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await fs.writeFile(file, '', { flag: 'wx', mode: 0o600 })
    return () => fs.rm(file, { force: true })
  }

  async #has(key: string, intent: Intent): Promise<boolean> {
    return (await this.#list()).some((lease) => lease.key === key && lease.intent === intent)
  }

  /** Leases of living processes; deletes the files of dead ones. */
  async #list(): Promise<Lease[]> {
    const leases: Lease[] = []
    const stamps = new Map<string, Promise<string>>()
    for (const name of await fs.readdir(this.#folder).catch(ifAbsent<string[]>([]))) {
      const [, key, intent, pid = '', stamp] = pattern.exec(name) ?? []
      if (key === undefined) continue
      const current = stamps.get(pid) ?? stampOf(Number(pid))
      stamps.set(pid, current)
      if ((await current) === stamp) leases.push({ key: decodeURIComponent(key), intent: intent as Intent })
      else await fs.rm(path.join(this.#folder, name), { force: true })
    }
    return leases
  }
}
