// Pages lead where they say: requirements that are cited are in docs/spec.md, and links lead to files.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { it } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')
const files = fs.globSync(['*.md', '{src,console,test,scripts,bench,packages}/**/*.{ts,tsx}', 'docs/**/*.md'], {
  cwd: root,
  exclude: ['**/node_modules'],
})

const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')

it('every link of a page leads to a file', () => {
  const broken = files
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) =>
      [...read(file).matchAll(/\]\(([^)#\s:]+)(#[^)]*)?\)/g)]
        .filter(([, target = '']) => !fs.existsSync(path.join(root, path.dirname(file), target)))
        .map(([, target]) => `${file}: ${target}`),
    )
  assert.deepEqual(broken, [])
})

it('every decision is in the index of docs/decisions', () => {
  const index = read('docs/decisions/README.md')
  const pages = fs.readdirSync(path.join(root, 'docs/decisions')).filter((name) => name !== 'README.md')
  assert.deepEqual(
    pages.filter((name) => !index.includes(`(${name})`)),
    [],
  )
})

it('every requirement that is cited is in docs/spec.md, each number once', () => {
  const numbers = [...read('docs/spec.md').matchAll(/\*\*(R\d+)\*\*/g)].map(([, number]) => number)
  assert.equal(new Set(numbers).size, numbers.length)
  const cited = files.flatMap((file) => read(file).match(/spec\.md(\]\([^)]*\))? R\d+(–R\d+)?/g) ?? [])
  assert.ok(cited.length > 20)
  const unknown = cited.flatMap((text) => text.match(/R\d+/g) ?? []).filter((number) => !numbers.includes(number))
  assert.deepEqual(unknown, [])
})
