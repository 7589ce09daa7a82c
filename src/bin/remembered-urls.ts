// The address that a node joined by, as its data folder tells it.
import path from 'node:path'
import { readFileIfPresent } from '../platform/files.ts'

export async function rememberedUrls(dataDir: string): Promise<readonly string[]> {
  try {
    const { apiUrl } = JSON.parse((await readFileIfPresent(path.join(dataDir, 'node.json'))) ?? '{}')
    return typeof apiUrl === 'string' ? [apiUrl] : []
  } catch {
    return []
  }
}
