// `npm run generate`: writes the files that are made from the source. A test proves that they are current.
import fs from 'node:fs/promises'
import path from 'node:path'
import about from '../package.json' with { type: 'json' }
import { legacyPage } from '../src/legacy/page.ts'
import { openApiDocument } from '../src/server/openapi.ts'
import { root } from './build.ts'

export interface GeneratedFile {
  readonly file: string
  readonly make: () => string | Promise<string>
}

export const generatedFiles: readonly GeneratedFile[] = [
  { file: 'docs/openapi.json', make: () => `${JSON.stringify(openApiDocument(about.version), null, 2)}\n` },
  { file: 'docs/legacy.md', make: legacyPage },
]

export const currentText = (file: string): Promise<string> => fs.readFile(path.join(root, file), 'utf8').catch(() => '')

if (import.meta.main) {
  for (const { file, make } of generatedFiles) {
    await fs.writeFile(path.join(root, file), await make())
    console.log(`wrote ${file}`)
  }
}
