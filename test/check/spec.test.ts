// Requirements that code, tests and pages cite are in docs/spec.md.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { it } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')
const files = fs.globSync(['*.md', '{src,console,test,scripts,bench,packages}/**/*.{ts,tsx}', 'docs/**/*.md'], {
  cwd: root,
  exclude: ['**/node_modules'],
})

it('every requirement that is cited is in docs/spec.md, each number once', () => {
  const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')
  const numbers = [...read('docs/spec.md').matchAll(/\*\*(R\d+)\*\*/g)].map(([, number]) => number)
  assert.equal(new Set(numbers).size, numbers.length)
  const cited = files.flatMap((file) => read(file).match(/spec\.md(\]\([^)]*\))? R\d+(–R\d+)?/g) ?? [])
  assert.ok(cited.length > 20)
  const unknown = cited.flatMap((text) => text.match(/R\d+/g) ?? []).filter((number) => !numbers.includes(number))
  assert.deepEqual(unknown, [])
})
