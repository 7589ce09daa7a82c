// Who is about to use a copy of an image, and who is about to remove it, as files beside the images: agents of one host
// may share the folder. Each writes its own file first and then looks for the other's, so at least one of them sees the
// other: the one who removes gives up, the one who uses waits until it has. Files of dead processes count for nothing.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { ifAbsent } from '../../images/content/temporary-files.ts'
import { stampOf } from '../../platform/processes.ts'

export interface Leases {
  /** Until it is released, the copy stays where it is, and so does one that comes meanwhile. */
  take(key: string): Promise<() => Promise<void>>
  /** `remove` runs when nobody has a lease and `mayGo` says so; nobody gets one meanwhile. Whether it ran. */
  remove(key: string, mayGo: () => Promise<boolean>, remove: () => Promise<void>): Promise<boolean>
  /** Keys that somebody has a lease of. */
  taken(): Promise<Set<string>>
}

type Intent = 'use' | 'remove'
interface Note {
  readonly name: string
  readonly key: string
  readonly intent: Intent
}

const pattern = /^(.+)\.(use|remove)\.(\d+)-([0-9a-f]{16})\.[0-9a-f]{12}$/
const lookAgainMs = 5
let own: Promise<string> | undefined

export function openLeases(imageFolder: string): Leases {
  const folder = path.join(imageFolder, 'leases')

  const write = async (key: string, intent: Intent): Promise<() => Promise<void>> => {
    own ??= stampOf(process.pid)
    const name = `${encodeURIComponent(key)}.${intent}.${process.pid}-${await own}.${randomBytes(6).toString('hex')}`
    const file = path.join(folder, name)
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    await fs.writeFile(file, '', { flag: 'wx', mode: 0o600 })
    return () => fs.rm(file, { force: true })
  }

  /** Those of living processes. What dead ones have left goes. */
  const notes = async (): Promise<Note[]> => {
    const found: Note[] = []
    const stamps = new Map<string, Promise<string>>()
    for (const name of await fs.readdir(folder).catch(ifAbsent<string[]>([]))) {
      const [, key, intent, pid = '', stamp] = pattern.exec(name) ?? []
      if (key === undefined) continue
      const known = stamps.get(pid) ?? stampOf(Number(pid))
      stamps.set(pid, known)
      if ((await known) === stamp) found.push({ name, key: decodeURIComponent(key), intent: intent as Intent })
      else await fs.rm(path.join(folder, name), { force: true })
    }
    return found
  }
  const has = async (key: string, intent: Intent): Promise<boolean> =>
    (await notes()).some((note) => note.key === key && note.intent === intent)

  return {
    async take(key) {
      const release = await write(key, 'use')
      try {
        // It is a matter of one rename.
        while (await has(key, 'remove')) await setTimeout(lookAgainMs)
        return release
      } catch (error) {
        await release()
        throw error
      }
    },
    async remove(key, mayGo, remove) {
      const release = await write(key, 'remove')
      try {
        if ((await has(key, 'use')) || !(await mayGo())) return false
        await remove()
        return true
      } finally {
        await release()
      }
    },
    taken: async () => new Set((await notes()).filter(({ intent }) => intent === 'use').map(({ key }) => key)),
  }
}
