// Captures of a VM that were not released: which layers each consists of, and its memory.
import fs from 'node:fs/promises'
import path from 'node:path'
import { captureFile, captureFolder, captureRecord, listRecords, removeUnnamed } from '../../capture-records.ts'
import type { Capture, MemoryState } from '../../driver.ts'
import { type OverlayLayer, removeStrayLayers } from './chain.ts'

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

export const memoryFile = (folder: string, id: string): string => path.join(folder, captureFile(id, 'memory'))

export async function makeCaptureFolder(folder: string): Promise<void> {
  await fs.mkdir(captureFolder(folder), { recursive: true, mode: 0o700 })
}

export const readCapture = (folder: string, id: string): Promise<CaptureRecord | undefined> =>
  captureRecord<CaptureRecord>(id).read(folder)

export const writeCapture = (folder: string, record: CaptureRecord): Promise<void> =>
  captureRecord<CaptureRecord>(record.id).write(folder, record)

export const listCaptures = (folder: string): Promise<readonly CaptureRecord[]> => listRecords(folder)

export async function releaseCapture(folder: string, id: string): Promise<void> {
  await fs.rm(path.join(folder, captureFile(id)), { force: true })
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
  const named = records.flatMap(({ id, shape }) => [`${id}.json`, ...(shape ? [`${id}.memory`] : [])])
  await removeUnnamed(folder, new Set(named))
}
