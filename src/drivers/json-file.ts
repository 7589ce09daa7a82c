// A record in a VM's folder: a small JSON file of a fixed name that is replaced atomically.
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../platform/files.ts'

export interface JsonFile<Content> {
  /** Undefined if the folder does not have the file. */
  read(folder: string): Promise<Content | undefined>
  write(folder: string, content: Content): Promise<void>
}

export const jsonFile = <Content>(name: string): JsonFile<Content> => ({
  async read(folder) {
    const text = await readFileIfPresent(path.join(folder, name))
    return text === undefined ? undefined : (JSON.parse(text) as Content)
  },
  write: (folder, content) => writeFileAtomically(path.join(folder, name), `${JSON.stringify(content)}\n`),
})
