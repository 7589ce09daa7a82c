// How far each capture of this node is, a small file each: what must be known after a kill -9 is written before the step
// that relies on it.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Architecture } from '../../api/architecture.ts'
import type { DesiredCapture } from '../../api/nodes/captures.ts'
import type { PushFormat } from '../../api/records.ts'
import type { Capture, Handle } from '../../drivers/driver.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { DesiredImage } from '../images/images.ts'
import type { CaptureProgress } from './server.ts'

interface Known {
  readonly version: 1
  readonly id: string
  readonly kind: DesiredCapture['kind']
  readonly handle: Handle
  readonly architecture: Architecture
  /** What the disk of the VM was made from. */
  readonly image: DesiredImage
  /** push: where to. */
  readonly reference?: string
  readonly format?: PushFormat
  readonly createdAt?: string
}

/** frozen: to be packed. packed: to be delivered. pushed: in the registry, still to be reported to the server. failed: so it is. */
export type CaptureState =
  | (Known & { readonly phase: 'frozen'; readonly capture: Capture })
  | (Known & { readonly phase: 'packed'; readonly content: string })
  | (Known & {
      readonly phase: 'pushed'
      readonly content: string
      readonly digest: string
      readonly told: CaptureProgress
    })
  | (Known & { readonly phase: 'failed'; readonly problem: string })

export interface CaptureStates {
  list(): Promise<readonly CaptureState[]>
  write(state: CaptureState): Promise<void>
  remove(id: string): Promise<void>
}

/** ids become names of files. */
const isSafe = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(id)

export function openCaptureStates(folder: string): CaptureStates {
  const fileOf = (id: string): string => {
    if (isSafe(id)) return path.join(folder, `${id}.json`)
    throw new Error(`the id ${JSON.stringify(id.slice(0, 200))} of a capture cannot name a file`)
  }
  return {
    async list() {
      const names = await fs.readdir(folder).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return []
        throw error
      })
      // A kill in the middle of a write leaves its beginning.
      for (const name of names) if (name.endsWith('.tmp')) await fs.rm(path.join(folder, name), { force: true })
      const texts = names
        .filter((name) => name.endsWith('.json'))
        .map((name) => readFileIfPresent(path.join(folder, name)))
      return (await Promise.all(texts)).flatMap((text) => parse(text) ?? [])
    },
    async write(state) {
      await fs.mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFileAtomically(fileOf(state.id), `${JSON.stringify(state)}\n`)
    },
    remove: (id) => fs.rm(fileOf(id), { force: true }),
  }
}

/** One that cannot be read is made again: captures are known by their id to the driver, too. */
function parse(text: string | undefined): CaptureState | undefined {
  try {
    const state = JSON.parse(text ?? '') as CaptureState
    return state.version === 1 && typeof state.id === 'string' && state.handle ? state : undefined
  } catch {
    return undefined
  }
}
