// Files that are served from memory. A folder is read once, with the first request, so that requests open no files.
import fs from 'node:fs/promises'
import path from 'node:path'

/** By name relative to the folder. */
export type Files = ReadonlyMap<string, Buffer>

/** `only`: the names of the files to read. A folder that does not exist yet has none, and is looked at again. */
export function filesIn(folder: string, only?: readonly string[]): () => Promise<Files> {
  let files: Promise<Files> | undefined
  const read = async (): Promise<Files> => {
    const names = only ?? (await namesIn(folder))
    if (names.length === 0) files = undefined
    return new Map(
      await Promise.all(names.map(async (name) => [name, await fs.readFile(path.join(folder, name))] as const)),
    )
  }
  return () => {
    files ??= read().catch((error: unknown) => {
      files = undefined
      throw error
    })
    return files
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  const entries = await fs.readdir(folder, { recursive: true, withFileTypes: true }).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(folder, path.join(parentPath, name)))
}
