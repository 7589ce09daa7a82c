// Some test uses every fail point.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { failPoints } from '../../src/agent/vms/steps.ts'

const root = path.resolve(import.meta.dirname, '../..')

const filesIn = (folder: string): string[] =>
  fs
    .readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.join(folder, name))
const isTest = (file: string): boolean => file.endsWith('.test.ts') || file.startsWith('test/')
const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')

const sources = filesIn('src').filter((file) => !isTest(file) && file !== 'src/platform/failpoint.ts')
const calls = sources.flatMap((file) =>
  [...read(file).matchAll(/\bfailpoint\(([^)]*\)?)\)/g)].map(([, name = '']) => name),
)

describe('fail points', () => {
  it('fail points are named where they stand, or by the steps of an agent, which its crash test goes through one by one', () => {
    const others = calls.filter((name) => !/^'[a-z.-]+'$/.test(name) && !/^failPointOf\(kind, /.test(name))
    assert.deepEqual(others, [])
    assert.ok(calls.length > 50, `${calls.length} were found`)
    assert.match(read('src/agent/crash.full.test.ts'), /\bfailPoints\b/)
    assert.ok(failPoints.length > 0)
  })

  it('fail points are all named by a test that lets a process die, be it a long one', () => {
    const tests = [...filesIn('src'), ...filesIn('test')]
      .filter((file) => isTest(file) && file !== 'test/check/failpoints.test.ts')
      .map(read)
    const named = calls.filter((name) => name.startsWith("'"))
    const missing = new Set(named.filter((name) => !tests.some((text) => text.includes(name))))
    assert.deepEqual([...missing], [])
  })
})
