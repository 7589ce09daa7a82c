// Captures of a VM that were not released: each is a clone of its files in a folder, which its record names.
import { randomUUID } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { failpoint } from '../../platform/failpoint.ts'
import { syncFolder } from '../../platform/files.ts'
import { captureFile, captureFolder, captureRecords, removeUnnamed } from '../capture-records.ts'
import type { Capture } from '../driver.ts'
import { explainFullDisk } from '../refusals.ts'
import { cloneFile, requireMachine, tartFile } from './machine.ts'
import { tartFiles } from './tart.ts'

interface CaptureRecord {
  readonly version: 1
  readonly id: string
  /** Increases with each capture of a VM. */
  readonly number: number
  /** tart's name of the VM. It changes with a revert, because the VM then has another disk. */
  readonly name: string
  readonly base: string
  /**
   * Ids of clones, which name their folders. The last one belongs to this capture; those before it are what it is compared
   * with.
   */
  readonly clones: readonly string[]
  readonly virtualSizeBytes: number
  readonly note?: string
}

const cloneOf = (folder: string, clone: string): string => path.join(captureFolder(folder), clone)

const { read, write, list } = captureRecords<CaptureRecord>()

const records = async (folder: string): Promise<readonly CaptureRecord[]> =>
  (await list(folder)).toSorted((a, b) => a.number - b.number)

export async function findCapture(folder: string, id: string): Promise<Capture | undefined> {
  const record = await read(folder, id)
  return record && captureOf(folder, record)
}

export async function listCaptures(folder: string): Promise<readonly Capture[]> {
  return (await records(folder)).map((record) => captureOf(folder, record))
}

function captureOf(folder: string, { id, base, clones, virtualSizeBytes, note }: CaptureRecord): Capture {
  const inside = (clone: string, file: keyof typeof tartFiles) => path.join(cloneOf(folder, clone), tartFiles[file])
  const own = clones.at(-1) ?? ''
  return {
    id,
    base,
    layers: clones.map((clone) => ({ id: clone, file: inside(clone, 'disk'), format: 'raw' })),
    virtualSizeBytes,
    machine: { config: inside(own, 'config'), nvram: inside(own, 'nvram') },
    ...(note !== undefined && { note }),
  }
}

/** Copies the files of a VM that is held still. The copy becomes a capture when it is recorded. */
export async function cloneMachine(folder: string, signal: AbortSignal): Promise<string> {
  const machine = await requireMachine(folder)
  await removeStrays(folder)
  const clone = randomUUID()
  const place = cloneOf(folder, clone)
  await fs.mkdir(place, { recursive: true, mode: 0o700 })
  try {
    for (const file of ['config', 'nvram', 'disk'] as const)
      await cloneFile(tartFile(folder, machine, file), path.join(place, tartFiles[file]), signal)
    await syncFolder(place)
  } catch (error) {
    await fs.rm(place, { recursive: true, force: true })
    throw explainFullDisk(error)
  }
  failpoint('apple-cloned')
  return clone
}

export async function recordCapture(
  folder: string,
  { id, clone, note }: { readonly id: string; readonly clone: string; readonly note: string | undefined },
): Promise<Capture> {
  const { name, base } = await requireMachine(folder)
  const known = await records(folder)
  // The disk differs less from its latest capture than from the image.
  const below = known.findLast((record) => record.name === name)?.clones ?? []
  const { size } = await fs.stat(path.join(cloneOf(folder, clone), tartFiles.disk))
  const record: CaptureRecord = {
    version: 1,
    id,
    number: (known.at(-1)?.number ?? 0) + 1,
    name,
    base,
    clones: [...below, clone],
    virtualSizeBytes: size,
    ...(note !== undefined && { note }),
  }
  await write(folder, record)
  failpoint('apple-captured')
  return captureOf(folder, record)
}

export async function releaseCapture(folder: string, id: string): Promise<void> {
  await fs.rm(path.join(folder, captureFile(id)), { force: true })
  await removeStrays(folder)
}

async function removeStrays(folder: string): Promise<void> {
  const named = (await records(folder)).flatMap(({ id, clones }) => [`${id}.json`, ...clones])
  await removeUnnamed(folder, new Set(named))
}
