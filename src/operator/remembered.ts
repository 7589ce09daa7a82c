// What the data folder of a node has for its next start: its name, the addresses of servers, and the pinned key.
import path from 'node:path'
import { textField } from '../cli/connect/connection.ts'
import { readFileIfPresent } from '../platform/files.ts'

interface Remembered {
  readonly name: string | undefined
  readonly apiUrls: readonly string[]
  readonly pin: string | undefined
}

export async function remembered(dataDir: string): Promise<Remembered> {
  try {
    const node = JSON.parse((await readFileIfPresent(path.join(dataDir, 'node.json'))) ?? '{}')
    const { name, apiUrl, apiUrls = [], pin } = node
    const urls = [apiUrl, ...apiUrls].filter((url) => typeof url === 'string')
    return { name: textField(name), apiUrls: [...new Set(urls)], pin: textField(pin) }
  } catch {
    return { name: undefined, apiUrls: [], pin: undefined }
  }
}
