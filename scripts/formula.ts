// `node scripts/formula.ts TARBALL URL`: Homebrew's formula for a package that `npm pack` made and that URL will serve.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import about from '../package.json' with { type: 'json' }
import { root } from './build.ts'

const template = path.join(root, 'packaging/homebrew/svc3.rb')

export async function formulaFor(tarball: string, url: string): Promise<string> {
  const values: Readonly<Record<string, string>> = {
    url,
    homepage: new URL(url).origin,
    version: about.version,
    sha256: createHash('sha256')
      .update(await fs.readFile(tarball))
      .digest('hex'),
  }
  const lines = (await fs.readFile(template, 'utf8')).split('\n').filter((line) => !line.startsWith('#'))
  return lines.join('\n').replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`${template}: nothing is known as {{${name}}}`)
    return value
  })
}

if (import.meta.main) {
  const [tarball, url] = process.argv.slice(2)
  if (tarball === undefined || url === undefined) {
    console.error('usage: node scripts/formula.ts TARBALL URL')
    process.exit(2)
  }
  process.stdout.write(await formulaFor(tarball, url))
}
