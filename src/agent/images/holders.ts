// Who holds copies of images in a folder that agents of one host may share: each agent leaves a file with where its VMs are
// and which images it is to keep. What VMs stand on is read from their own records, so it is true after any crash.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { ifAbsent } from '../../images/content/temporary-files.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import { openHandles, type VmHandleRecord } from '../state/handles.ts'

export interface Holders {
  /** Keys of the images that this agent is to keep. */
  keep(keys: readonly string[]): Promise<void>
  /** Of all agents. */
  held(): Promise<Held>
}

export interface Held {
  readonly pinned: ReadonlySet<string>
  readonly used: ReadonlySet<string>
  /** A record of a VM cannot be read: nobody knows what that VM stands on. */
  readonly isUnknown: boolean
}

interface Holder {
  readonly folder: string
  readonly driver: string
  readonly pins: readonly string[]
}

/** For a folder that no VM stands on. */
export const nobody: Holders = {
  keep: async () => undefined,
  held: async () => ({ pinned: new Set(), used: new Set(), isUnknown: false }),
}

/** `folder` is the agent's own. */
export async function openHolders(imageFolder: string, folder: string, driver: string): Promise<Holders> {
  const holders = path.join(imageFolder, 'holders')
  const own = path.join(holders, `${createHash('sha256').update(path.resolve(folder)).digest('hex').slice(0, 32)}.json`)
  const write = (pins: readonly string[]): Promise<void> => {
    const holder: Holder = { folder: path.resolve(folder), driver, pins }
    return writeFileAtomically(own, `${JSON.stringify(holder)}\n`)
  }
  await fs.mkdir(holders, { recursive: true, mode: 0o700 })
  if ((await read(own)) === undefined) await write([])

  return {
    keep: write,
    async held() {
      const pinned = new Set<string>()
      const used = new Set<string>()
      let isUnknown = false
      for (const name of await fs.readdir(holders)) {
        if (!name.endsWith('.json')) continue
        const file = path.join(holders, name)
        const holder = await read(file)
        if (!holder) {
          isUnknown = true
          continue
        }
        // The agent and its VMs were removed from this host.
        if (!(await fs.stat(holder.folder).then(() => true, ifAbsent(false)))) {
          if (file !== own) await fs.rm(file, { force: true })
          continue
        }
        for (const key of holder.pins) pinned.add(key)
        for (const { record } of await openHandles(holder.folder, holder.driver, 'synced').list()) {
          if (record === 'unreadable') isUnknown = true
          else if (record) for (const key of keysOf(record)) used.add(key)
        }
      }
      return { pinned, used, isUnknown }
    },
  }
}

/** What its disk was made from, and what it would be made from now. */
function keysOf({ base, desired }: VmHandleRecord): string[] {
  const { image, isoContent } = desired
  return [base, image.content, image.recipe && `recipe:${image.recipe}`, isoContent].filter((key) => key !== undefined)
}

async function read(file: string): Promise<Holder | undefined> {
  try {
    const holder = JSON.parse((await readFileIfPresent(file)) ?? '') as Holder
    return typeof holder.folder === 'string' && Array.isArray(holder.pins) ? holder : undefined
  } catch {
    return undefined
  }
}
