// No regular expression of the product takes more than linear time on texts that repeat the beginning of a match, such as
// `"start": 1,` before `.*`. Measured, because no JavaScript tool decides this within seconds. refa generates what an
// expression matches.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { it } from 'node:test'
import { type Found, productSources, readSource } from '../support/tools/regular-expressions.ts'

type CharSet = { readonly ranges: readonly { readonly min: number }[] }

// The used part of refa.
const { JS, NFA, Words } = createRequire(import.meta.url)('refa') as {
  JS: { Parser: { fromLiteral(expression: RegExp): { parse(options: object): { expression: object; maxCharacter: number } } } }
  NFA: { fromRegex(expression: object, options: object): { wordSets(): Iterable<CharSet[]> } }
  Words: { fromUnicodeToString(word: readonly number[]): string; pickMostReadableWord(word: CharSet[]): number[] | undefined }
} // biome-ignore format: as they are declared

const maxWords = 8
const longestWord = 80

/** The shortest matches, ignoring assertions. */
function wordsOf(expression: RegExp): string[] {
  const parsed = JS.Parser.fromLiteral(expression).parse({ assertions: 'ignore', backreferences: 'disable' })
  const words: string[] = []
  for (const sets of NFA.fromRegex(parsed.expression, { maxCharacter: parsed.maxCharacter }).wordSets()) {
    if (sets.length > longestWord || words.length === maxWords) break
    const word = Words.pickMostReadableWord(sets) ?? sets.map(({ ranges }) => ranges[0]?.min ?? 0)
    words.push(Words.fromUnicodeToString(word))
  }
  return words
}

const length = 8_000

function millisecondsOf(expression: RegExp, text: string): number {
  expression.lastIndex = 0
  const { user } = process.cpuUsage()
  expression.exec(text)
  return (process.cpuUsage().user - user) / 1_000
}

/** Returns a prefix that makes it slow. A suspicious one is measured again: only repeated slowness counts. */
function slowOn(expression: RegExp): string | undefined {
  const beginnings = new Set(wordsOf(expression).flatMap((word) => Array.from(word, (_, at) => word.slice(0, at + 1))))
  return [...beginnings].find((unit) => {
    const text = (characters: number): string => `${unit.repeat(Math.ceil(characters / unit.length))}\u0001\n`
    if (millisecondsOf(expression, text(length)) < 2) return false
    const best = (characters: number): number =>
      Math.min(...Array.from({ length: 3 }, () => millisecondsOf(expression, text(characters))))
    const small = best(length)
    return small >= 1 && best(4 * length) > 9 * small
  })
}

const slow = (found: readonly Found[]): string[] =>
  found.flatMap(({ place, expression }) => {
    const unit = slowOn(expression)
    return unit === undefined ? [] : [`${place}: ${expression} on ${JSON.stringify(unit)}, repeated`]
  })

it('regular expressions of the product take linear time on what they match, repeated', () => {
  const literals = productSources().flatMap((each) => each.literals)
  assert.ok(literals.length > 400)
  assert.deepEqual(slow(literals), [])
})

it('a regular expression that is slow on a longer text, repeated, is found in a source', () => {
  const { literals } = readSource(
    'x.ts',
    String.raw`const fine = /^<b>.*y/
const anywhere = /<b>.*y/
const endings = /(\.(qcow2|gz))+$/`,
  )
  assert.deepEqual(
    slow(literals).map((text) => text.split(' ', 1)[0]),
    ['x.ts:2:', 'x.ts:3:'],
  )
})
