// Scanned repositories are untrusted, so the time must be linear in the text.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { scanText } from './scan.ts'

const shapes: readonly (readonly [file: string, piece: string])[] = [
  ['a.ts', '`${'],
  ['a.ts', '"\\\'\\`'],
  ['a.ts', '"/a" + '],
  ['a.ts', '/*\n'],
  ['a.kt', 'f(f(f("/resources/vm/list", a), a)'],
  ['a.py', '"""\n"a" '],
  ['a.py', '"/resources/vm/list",\n'],
  ['a.rb', '#{"'],
  ['a.swift', '"\\("\\\\'],
  ['a.sh', '"$(curl `$'],
  ['a.sh', 'curl \\\n'],
  ['a.sh', 'A=$A$A\n'],
  ['a.sh', '-s -X POST "$A" '],
  ['a.yml', '{{   a: '],
  ['a.json', '{"openapi":"3","paths":{"/users":\n'],
  ['a.md', 'GET /....'],
  ['a.txt', `curl ${'a.b:'.repeat(200)}/resources/vm/list\n`],
]

describe('hostile texts', () => {
  for (const [file, piece] of shapes)
    it(`the legacy scan takes time that grows with the text: ${JSON.stringify(piece.slice(0, 40))} in ${file}`, () => {
      const millisecondsFor = (size: number): number => {
        const start = process.cpuUsage().user
        scanText(file, piece.repeat(size / piece.length))
        return (process.cpuUsage().user - start) / 1_000
      }
      millisecondsFor(2 ** 14)
      const small = millisecondsFor(2 ** 15)
      const large = millisecondsFor(2 ** 18)
      assert.ok(large <= 24 * small + 200, `${small} ms, then ${large} ms for 8 times as much`)
    })
})
