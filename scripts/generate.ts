// `npm run generate`: writes the files that are made from the source. A test proves that they are current.
import fs from 'node:fs/promises'
import path from 'node:path'
import about from '../package.json' with { type: 'json' }
import { legacyPage } from '../src/legacy/page.ts'
import { openApiDocument } from '../src/server/http/openapi.ts'
import { root } from './build.ts'
import { metricsTable, settingsTable, withTable } from './doc-tables.ts'
import { manPages } from './reference/man-pages.ts'
import { pagesOf } from './reference/pages.ts'
import { referencePages } from './reference/reference-page.ts'

interface GeneratedFile {
  readonly file: string
  readonly make: () => string | Promise<string>
}

const manFolder = 'docs/man'
const commandsFolder = 'docs/reference/cli'
const pages = await pagesOf()

const manual = manPages(pages, about.version).map(({ file, text }) => ({
  file: `${manFolder}/${file}`,
  make: () => text,
}))
/** npm puts only those pages where man finds them that are listed one by one. */
const withManual = { ...about, man: manual.map(({ file }) => file).sort() }

const reference = referencePages(pages).map(({ file, text }) => ({
  file: `${commandsFolder}/${file}`,
  make: () => text,
}))
const pageWithTable = (file: string, name: string, table: () => string): GeneratedFile => ({
  file,
  make: async () => withTable(await currentText(file), name, table()),
})

export const generatedFiles: readonly GeneratedFile[] = [
  { file: 'package.json', make: () => `${JSON.stringify(withManual, null, 2)}\n` },
  { file: 'docs/openapi.json', make: () => `${JSON.stringify(openApiDocument(about.version), null, 2)}\n` },
  { file: 'docs/reference/orka-2.4.md', make: legacyPage },
  pageWithTable('docs/reference/config.md', 'settings', settingsTable),
  pageWithTable('docs/reference/metrics.md', 'metrics', metricsTable),
  ...reference,
  ...manual,
]

/** Pages of removed commands are deleted. */
export async function strayPages(): Promise<string[]> {
  const found: string[] = []
  for (const folder of [manFolder, commandsFolder])
    for (const name of await fs.readdir(path.join(root, folder)).catch((): string[] => []))
      found.push(`${folder}/${name}`)
  return found.filter((file) => !generatedFiles.some((generated) => generated.file === file))
}

export const currentText = (file: string): Promise<string> => fs.readFile(path.join(root, file), 'utf8').catch(() => '')

if (import.meta.main) {
  for (const folder of [manFolder, commandsFolder]) await fs.mkdir(path.join(root, folder), { recursive: true })
  for (const file of await strayPages()) await fs.rm(path.join(root, file))
  for (const { file, make } of generatedFiles) {
    await fs.writeFile(path.join(root, file), await make())
    console.log(`wrote ${file}`)
  }
}
