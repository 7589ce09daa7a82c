// Captures of a VM that were not released: which layers each consists of, and its memory.
import fs from 'node:fs/promises'
import path from 'node:path'
import { captureFile, captureRecords, removeUnnamed } from '../../capture-records.ts'
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

export const { read: readCapture, write: writeCapture, list: listCaptures } = captureRecords<CaptureRecord>()

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
