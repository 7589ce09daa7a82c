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

/** What parsers of shells trip over. */
const shellTokens = ['$(', '`', '"', "'", '${', '<<A', 'case ', '((', '{', '$', '\\', '$(a', '"$(', '%(', 'a b', ' -X', ' \\\n'] // biome-ignore format: a list
const paths = ['/token ', '"/resources/vm/list",', '; curl /token', '$A/token ']
const mebibyte = 2 ** 20
/** Longer lines are skipped, so what is slow within a line is slowest here. */
const longest = 19_990

const inLines = (piece: string, size: number, length: number): string =>
  `A=${'a'.repeat(500)}\n${`${piece.repeat(length / piece.length)}\n`.repeat(size / length)}`

/** Random tokens; the same ones in each run. */
function mixture(size: number, length: number): string {
  const pieces = [...shellTokens, 'curl ', '/token', '\n']
  let seed = 1
  let text = ''
  for (let line = 0; text.length < size; ) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    text += pieces[seed % pieces.length] ?? ''
    if (text.length - line > length) {
      text += '\n'
      line = text.length
    }
  }
  return text
}

const millisecondsFor = (file: string, text: string): number => {
  const start = process.cpuUsage().user
  scanText(file, text)
  return (process.cpuUsage().user - start) / 1_000
}

/** Measured again when it looks bad: only what is slow every time is slow. */
function assertLinear(of: (size: number) => string, most: number): void {
  const [quarter, whole] = [of(mebibyte / 4), of(mebibyte)]
  let told = ''
  for (let attempt = 0; attempt < 3; attempt++) {
    const [small, large] = [millisecondsFor('a.sh', quarter), millisecondsFor('a.sh', whole)]
    if (large <= 6 * small + 100 && large <= most) return
    told += `${small} ms, then ${large} ms for 4 times as much; `
  }
  assert.fail(told)
}

describe('hostile texts', () => {
  for (const [file, piece] of shapes)
    it(`the legacy scan takes time that grows with the text: ${JSON.stringify(piece.slice(0, 40))} in ${file}`, () => {
      const timeOf = (size: number): number => millisecondsFor(file, piece.repeat(size / piece.length))
      timeOf(2 ** 14)
      const small = timeOf(2 ** 15)
      const large = timeOf(2 ** 18)
      assert.ok(large <= 24 * small + 200, `${small} ms, then ${large} ms for 8 times as much`)
    })

  for (const [pieces, most] of [
    [shellTokens, 2_000],
    [paths, 5_000],
  ] as const)
    for (const piece of pieces)
      it(`the legacy scan reads a mebibyte of ${JSON.stringify(piece)} in long lines, in linear time`, () =>
        assertLinear((size) => inLines(piece, size, longest), most))
  for (const length of [80, longest])
    it(`the legacy scan reads a mebibyte of mixed tokens in lines of ${length}, in linear time`, () =>
      assertLinear((size) => mixture(size, length), 2_000))
})
