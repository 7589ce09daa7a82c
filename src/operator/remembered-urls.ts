// Where a node's servers are, as its data folder tells it: the address that it joined by, those that it has learned since,
// and by which key it knows them.
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
