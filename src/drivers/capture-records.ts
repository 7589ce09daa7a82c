// Records of captures that were not released: `captures/<id>.json` in the VM's folder, written after everything that it
// names is on disk. Without that file there is no capture.
import fs from 'node:fs/promises'
import path from 'node:path'
import { jsonFile } from './json-file.ts'

const idForm = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/

export const captureFolder = (folder: string): string => path.join(folder, 'captures')

/** The name of a file that belongs to a capture, relative to the VM's folder. */
export function captureFile(id: string, ending: 'json' | 'memory' = 'json'): string {
  if (!idForm.test(id)) throw new Error(`a capture cannot be called ${JSON.stringify(id.slice(0, 150))}`)
  return path.join('captures', `${id}.${ending}`)
}

/** `Content` is what a driver records of a capture. */
export function captureRecords<Content extends { readonly id: string }>() {
  const fileOf = (id: string) => jsonFile<Content>(captureFile(id))
  const read = (folder: string, id: string): Promise<Content | undefined> => fileOf(id).read(folder)
  return {
    read,
    write: (folder: string, record: Content): Promise<void> => fileOf(record.id).write(folder, record),
    async list(folder: string): Promise<readonly Content[]> {
      const names = await fs.readdir(captureFolder(folder)).catch(() => [])
      const ids = names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length))
      const records = await Promise.all(ids.sort().map((id) => read(folder, id)))
      return records.filter((record) => record !== undefined)
    },
  }
}

/** Removes everything from the folder of captures that is not in `named`. */
export async function removeUnnamed(folder: string, named: ReadonlySet<string>): Promise<void> {
  for (const name of await fs.readdir(captureFolder(folder)).catch(() => []))
    if (!named.has(name)) await fs.rm(path.join(captureFolder(folder), name), { recursive: true, force: true })
}
