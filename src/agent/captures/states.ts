// The states of this node's captures, in a small file each. A state is written before the step that relies on it.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Architecture } from '../../api/architecture.ts'
import type { DesiredCapture } from '../../api/nodes/captures.ts'
import type { PushFormat } from '../../api/records.ts'
import type { Capture, Handle } from '../../drivers/driver.ts'
import { ifAbsent, readJsonFile, writeFileAtomically } from '../../platform/files.ts'
import type { VmImage } from '../images/images.ts'
import type { CaptureProgress } from './server.ts'

interface CommonState {
  readonly version: 1
  readonly id: string
  readonly kind: DesiredCapture['kind']
  readonly handle: Handle
  readonly architecture: Architecture
  /** The image that the VM's disk was made from. */
  readonly image: VmImage
  readonly reference?: string
  readonly format?: PushFormat
  readonly createdAt?: string
}

/** What comes next: frozen is packed, packed is delivered or pushed, pushed and failed are reported to the server. */
export type CaptureState =
  | (CommonState & { readonly phase: 'frozen'; readonly capture: Capture })
  | (CommonState & { readonly phase: 'packed'; readonly content: string })
  | (CommonState & {
      readonly phase: 'pushed'
      readonly content: string
      readonly digest: string
      readonly told: CaptureProgress
    })
  | (CommonState & { readonly phase: 'failed'; readonly problem: string })

export type StateIn<P extends CaptureState['phase']> = Extract<CaptureState, { phase: P }>

export interface CaptureStates {
  list(): Promise<readonly CaptureState[]>
  write(state: CaptureState): Promise<void>
  remove(id: string): Promise<void>
}

/** Ids are used as file names. */
const isSafe = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(id)

export function openCaptureStates(folder: string): CaptureStates {
  const fileOf = (id: string): string => {
    if (isSafe(id)) return path.join(folder, `${id}.json`)
    throw new Error(`the id ${JSON.stringify(id.slice(0, 200))} of a capture cannot name a file`)
  }
  return {
    async list() {
      const names = await fs.readdir(folder).catch(ifAbsent<string[]>([]))
      // Left by a process that was killed during a write.
      for (const name of names) if (name.endsWith('.tmp')) await fs.rm(path.join(folder, name), { force: true })
      const files = names.filter((name) => name.endsWith('.json')).map((name) => path.join(folder, name))
      // An unreadable state is skipped: the capture is then frozen again, and the driver recognizes its id.
      return (await Promise.all(files.map(read))).filter((state) => state !== undefined)
    },
    async write(state) {
      await fs.mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFileAtomically(fileOf(state.id), `${JSON.stringify(state)}\n`)
    },
    remove: (id) => fs.rm(fileOf(id), { force: true }),
  }
}

const read = (file: string): Promise<CaptureState | undefined> =>
  readJsonFile(file, ({ version, id, handle }) => version === 1 && typeof id === 'string' && handle !== undefined)
