// Which copies of images must stay. Agents of one host may share the folder: each writes a file with the location of its VMs
// and the images that it pins. The images that VMs use are read from the VMs' own records, which are right after any crash.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { ifAbsent, readJsonFile, writeFileAtomically } from '../../platform/files.ts'
import { openHandles, type VmHandleRecord } from '../state/handles.ts'

export interface Holders {
  /** Replaces the keys that this agent pins. */
  pin(keys: readonly string[]): Promise<void>
  /** Whether an agent pins a copy or a VM of one uses it. */
  held(): Promise<(key: string) => boolean>
}

interface Holder {
  readonly folder: string
  readonly driver: string
  readonly pins: readonly string[]
}

/** For a folder that no VM uses. */
export const noHolders: Holders = {
  pin: async () => undefined,
  held: async () => () => false,
}

export async function openHolders(imageFolder: string, agentFolder: string, driver: string): Promise<Holders> {
  const holders = path.join(imageFolder, 'holders')
  const folder = path.resolve(agentFolder)
  const own = path.join(holders, `${createHash('sha256').update(folder).digest('hex').slice(0, 32)}.json`)
  const pin = (pins: readonly string[]): Promise<void> =>
    writeFileAtomically(own, `${JSON.stringify({ folder, driver, pins } satisfies Holder)}\n`)
  await fs.mkdir(holders, { recursive: true, mode: 0o700 })
  if ((await read(own)) === undefined) await pin([])

  return {
    pin,
    async held() {
      const held = new Set<string>()
      // If a file is unreadable, any copy may be in use.
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
        for (const key of holder.pins) held.add(key)
        for (const { record } of await openHandles(holder.folder, holder.driver, 'synced').list()) {
          if (record === 'unreadable') isUnknown = true
          else if (record) for (const key of keysOf(record)) held.add(key)
        }
      }
      return (key) => isUnknown || held.has(key)
    },
  }
}

/** Returns the keys of the image that the disk was made from, of the one for its next disk, and of the ISO. */
function keysOf({ base, desired }: VmHandleRecord): string[] {
  const { image, isoContent } = desired
  return [base, image.content, image.recipe && `recipe:${image.recipe}`, isoContent].filter((key) => key !== undefined)
}

const read = (file: string): Promise<Holder | undefined> =>
  readJsonFile(file, (holder) => typeof holder.folder === 'string' && Array.isArray(holder.pins))
