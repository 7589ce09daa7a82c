// A digest of a build's sources: a build is skipped while they are the same.
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'

export const root = path.resolve(import.meta.dirname, '..')

/** All that ends up in dist/. */
const programSources = ['src', 'packages', 'console', 'package.json', 'package-lock.json', 'scripts/build.ts', 'scripts/build-client.ts', 'scripts/build-console.ts', 'scripts/build-inventory.ts', 'scripts/schema-stubs.ts'] // biome-ignore format: a list

export const programStamp = (): string => stampOf(programSources)
const stampFile = path.join(root, 'dist', '.sources')

/** Whether dist/ is what a build would make now. */
export const isBuilt = (): boolean => fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === programStamp()

export function stampOf(names: readonly string[]): string {
  const hash = createHash('sha256')
  for (const name of names) {
    const file = path.join(root, name)
    const inside = fs.statSync(file).isDirectory() ? fs.readdirSync(file, { recursive: true, encoding: 'utf8' }) : ['']
    for (const each of inside.sort()) {
      const full = path.join(file, each)
      if (fs.statSync(full).isFile()) hash.update(`${name}/${each}\0`).update(fs.readFileSync(full)).update('\0')
    }
  }
  return hash.digest('hex')
}
