// The note by which `svc3 server rotate-key` asks a running server for a new master key, and is answered.
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../platform/files.ts'
import type { Rotation } from './reseal.ts'

/** SIGHUP is for terminals that close. */
export const rotateSignal = 'SIGUSR2'

export interface RotationNote {
  readonly id: string
  readonly rotation?: Rotation
  readonly problem?: string
}

const fileIn = (dataDir: string): string => path.join(dataDir, 'rotation.json')

export const writeRotation = (dataDir: string, note: RotationNote): Promise<void> =>
  writeFileAtomically(fileIn(dataDir), `${JSON.stringify(note)}\n`, { mode: 0o600 })

export async function readRotation(dataDir: string): Promise<RotationNote | undefined> {
  const text = await readFileIfPresent(fileIn(dataDir))
  return text === undefined ? undefined : (JSON.parse(text) as RotationNote)
}
