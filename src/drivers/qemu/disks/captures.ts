// Captures of a VM that were not released: a small file each, written after everything that it names is on disk. Without
// that file there is no capture.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../../../platform/files.ts'
import type { Capture, MemoryState } from '../../driver.ts'
import { type OverlayLayer, removeStrayLayers } from './chain.ts'

const folderName = 'captures'
const idForm = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/

export interface CaptureRecord {
  readonly version: 1
  readonly id: string
  readonly base: string
  readonly layers: readonly OverlayLayer[]
  readonly virtualSizeBytes: number
  /** The shape of the memory beside it. Absent if there is none. */
  readonly shape?: MemoryState['description']
  readonly note?: string
}

function place(folder: string, id: string, ending: 'json' | 'memory'): string {
  if (!idForm.test(id)) throw new Error(`a capture cannot be called ${JSON.stringify(id.slice(0, 150))}`)
  return path.join(folder, folderName, `${id}.${ending}`)
}

export const memoryFile = (folder: string, id: string): string => place(folder, id, 'memory')

export async function makeCaptureFolder(folder: string): Promise<void> {
  await fs.mkdir(path.join(folder, folderName), { recursive: true, mode: 0o700 })
}

export async function readCapture(folder: string, id: string): Promise<CaptureRecord | undefined> {
  const text = await readFileIfPresent(place(folder, id, 'json'))
  return text === undefined ? undefined : (JSON.parse(text) as CaptureRecord)
}

export const writeCapture = (folder: string, record: CaptureRecord): Promise<void> =>
  writeFileAtomically(place(folder, record.id, 'json'), `${JSON.stringify(record)}\n`)

export async function listCaptures(folder: string): Promise<readonly CaptureRecord[]> {
  const names = await fs.readdir(path.join(folder, folderName)).catch(() => [])
  const ids = names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length))
  const records = await Promise.all(ids.sort().map((id) => readCapture(folder, id)))
  return records.filter((record) => record !== undefined)
}

export async function releaseCapture(folder: string, id: string): Promise<void> {
  await fs.rm(place(folder, id, 'json'), { force: true })
  await removeStrays(folder)
}

export function shownCapture(folder: string, { shape, layers, version: _, ...rest }: CaptureRecord): Capture {
  return {
    ...rest,
    layers: layers.map(({ id, file }) => ({ id, file: path.join(folder, file) })),
    ...(shape && { memory: { file: memoryFile(folder, rest.id), description: shape } }),
  }
}

/** Removes files that neither the disk nor a capture needs. */
export async function removeStrays(folder: string): Promise<void> {
  const records = await listCaptures(folder)
  await removeStrayLayers(folder, new Set(records.flatMap(({ layers }) => layers.map(({ file }) => file))))
  const named = new Set(records.flatMap(({ id, shape }) => [`${id}.json`, ...(shape ? [`${id}.memory`] : [])]))
  for (const name of await fs.readdir(path.join(folder, folderName)).catch(() => []))
    if (!named.has(name)) await fs.rm(path.join(folder, folderName, name), { force: true })
}
