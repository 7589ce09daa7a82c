// No regular expression of the product takes more than linear time: otherwise a caller, a registry or a file could block
// the event loop with a few hundred kilobytes. scslre decides it for texts that repeat one character;
// regular-expressions.full.test.ts tries longer ones.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import path from 'node:path'
import { describe, it } from 'node:test'
import { type Found, productSources, readSource } from '../support/tools/regular-expressions.ts'

const root = path.resolve(import.meta.dirname, '../..')

// The package's types refer to those of its parser; this is the used part.
const { analyse } = createRequire(import.meta.url)('scslre') as {
  analyse(expression: RegExp): { readonly reports: readonly { readonly type: string; readonly exponential: boolean }[] }
}

/**
 * Not loaded, because most of the program comes with them. They only put fixed names between `^` and `[^/]+` or
 * `\s+(\S+)`.
 */
const notLoaded = new Set(['src/server/app.ts', 'src/agent/doctor/doctor.ts'])

/** Expressions that modules create by `new RegExp` when they are loaded. */
async function madeBy(files: readonly string[]): Promise<Found[]> {
  const own = globalThis.RegExp
  const made: Found[] = []
  globalThis.RegExp = new Proxy(own, {
    construct(target, [pattern, flags]) {
      const expression = new target(pattern, flags)
      made.push({ place: 'made by new RegExp', expression })
      return expression
    },
  })
  try {
    for (const file of files) await import(path.join(root, file))
    return made
  } finally {
    globalThis.RegExp = own
  }
}

const slow = (found: readonly Found[]): string[] =>
  found
    .filter(({ expression }) => analyse(expression).reports.length > 0)
    .map(({ place, expression }) => `${place}: ${expression}`)

describe('regular expressions', () => {
  const read = productSources()

  it('regular expressions of the product take linear time', () => {
    const literals = read.flatMap((each) => each.literals)
    assert.ok(literals.length > 400)
    assert.deepEqual(slow(literals), [])
  })

  it('regular expressions that modules of the product put together take linear time', async () => {
    const makers = read.filter(({ makesOthers }) => makesOthers).map(({ file }) => file)
    for (const file of notLoaded) assert.ok(makers.includes(file), `${file} makes none`)
    const others = makers.filter((file) => !notLoaded.has(file))
    const made = await madeBy(others)
    assert.ok(made.length >= others.length, `${others} make theirs when they are loaded`)
    assert.deepEqual(slow(made), [])
  })

  it('a regular expression that takes more than linear time is found in a source', () => {
    const { literals } = readSource(
      'x.ts',
      String.raw`const fine = /(?<!\/)\/+$/
const trim = (text: string) => text.replace(/\/+$/, '')
const three = /^\s*(\S+)\s+(.+?)\s*$/`,
    )
    assert.deepEqual(slow(literals), ['x.ts:2: /\\/+$/', 'x.ts:3: /^\\s*(\\S+)\\s+(.+?)\\s*$/'])
  })
})
