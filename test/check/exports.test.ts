// Everything that is exported is used by another file or a test.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { it } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')
const folders = ['src', 'console', 'packages', 'test', 'bench', 'scripts']

/** Used by the build (scripts/build-console.ts). */
const takenByBuild = ['console/pages/vms/xterm-style.ts: styleElement']

type Sources = ReadonlyMap<string, string>

const namesIn = (list: string): string[] =>
  list
    .split(',')
    .map((part) => part.trim().replace(/^type\s+/, ''))
    .filter((part) => part !== '')

/** For `name as other`: the original name. */
const original = (name: string): string => name.split(/\s+as\s+|\s*:\s*/)[0] ?? name
const renamed = (name: string): string => name.split(/\s+as\s+/).at(-1) ?? name

/** File → the names that others import from it; `*` for all. */
function takenFrom(sources: Sources): Map<string, Set<string>> {
  const taken = new Map<string, Set<string>>()
  for (const [file, text] of sources) {
    const take = (from: string, names: readonly string[]): void => {
      const target = path.join(path.dirname(file), from)
      taken.set(target, new Set([...(taken.get(target) ?? []), ...names]))
    }
    for (const [, clause = '', from = ''] of text.matchAll(
      /\b(?:import|export)\s([^'"]*?)\bfrom\s*['"](\.[^'"]+)['"]/g,
    )) {
      const [, list = ''] = /\{([^}]*)\}/.exec(clause) ?? []
      take(from, clause.includes('*') ? ['*'] : namesIn(list).map(original))
    }
    for (const [, list, from = ''] of text.matchAll(/(?:\{([^{}]*)\}\s*=\s*await\s+)?\bimport\(\s*['"](\.[^'"]+)['"]/g))
      take(from, list === undefined ? ['*'] : namesIn(list).map(original))
  }
  return taken
}

function exportsOf(text: string): string[] {
  const declared = text.matchAll(
    /^export (?:declare |abstract |async )*(?:const|let|function\*?|class|interface|type) (\w+)/gm,
  )
  const listed = text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)
  return [
    ...[...declared].map(([, name = '']) => name),
    ...[...listed].flatMap(([, list = '']) => namesIn(list).map(renamed)),
  ]
}

function unused(sources: Sources): string[] {
  const taken = takenFrom(sources)
  return [...sources].flatMap(([file, text]) => {
    const names = taken.get(file) ?? new Set()
    return names.has('*') ? [] : exportsOf(text).filter((name) => !names.has(name)).map((name) => `${file}: ${name}`) // biome-ignore format: one line
  })
}

it('an export that nobody takes is found, in whatever form it stands', () => {
  const sources = new Map([
    [
      'src/a.ts',
      'export const one = 1\nexport interface Two {}\nexport async function three() {}\nexport { four, type Five }',
    ],
    ['src/b.ts', "import { one, type Two as Other } from './a.ts'\nconst { three: there } = await import('./a.ts')"],
    ['src/all.ts', 'export const any = 1'],
    ['test/c.ts', "import * as all from '../src/all.ts'\nexport {\n  four,\n} from '../src/a.ts'\n"],
  ])
  assert.deepEqual(unused(sources), ['src/a.ts: Five', 'test/c.ts: four'])
})

it('everything that is exported is taken by another file', () => {
  const names = folders.flatMap((folder) => fs.globSync(`${folder}/**/*.{ts,tsx,mjs}`, { cwd: root }))
  const files = names.filter((file) => !file.endsWith('.d.ts') && !file.includes('node_modules'))
  assert.ok(files.length > 500)
  const sources = new Map(files.map((file) => [file, fs.readFileSync(path.join(root, file), 'utf8')]))
  assert.deepEqual(unused(sources), takenByBuild)
})
