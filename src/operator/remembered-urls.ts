// The server addresses in a node's data folder: the one it joined by, those it has learned since, and the pinned key.
import path from 'node:path'
import { readFileIfPresent } from '../platform/files.ts'

interface Remembered {
  readonly apiUrls: readonly string[]
  readonly pin: string | undefined
}

export async function remembered(dataDir: string): Promise<Remembered> {
  try {
    const { apiUrl, apiUrls = [], pin } = JSON.parse((await readFileIfPresent(path.join(dataDir, 'node.json'))) ?? '{}')
    const urls = [apiUrl, ...apiUrls].filter((url) => typeof url === 'string')
    return { apiUrls: [...new Set(urls)], pin: typeof pin === 'string' ? pin : undefined }
  } catch {
    return { apiUrls: [], pin: undefined }
  }
}
