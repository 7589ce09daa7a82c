// No regular expression of the product takes more than linear time: one that does lets a caller, a registry or a file hold
// the event loop with a few hundred kilobytes. scslre decides it for texts that repeat one character, anywhere in the
// expression; test/parsers.full.test.ts measures the parsers that outsiders reach with longer patterns.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { describe, it } from 'node:test'
import { parseAst } from 'vite'

const root = path.resolve(import.meta.dirname, '../..')

// Its own types name those of the parser beneath it; this is all that is needed here.
const { analyse } = createRequire(import.meta.url)('scslre') as {
  analyse(expression: RegExp): { readonly reports: readonly { readonly type: string; readonly exponential: boolean }[] }
}

/** Made when a function is called, out of paths of the API and names of programs, which are constants with `[^/]+` or `\S+` between. */
const madeLater = new Set(['src/server/app.ts', 'src/agent/doctor/doctor.ts'])

interface Found {
  readonly place: string
  readonly expression: RegExp
}

interface Node {
  readonly type: string
  readonly start: number
  readonly [key: string]: unknown
}

function visit(value: unknown, take: (node: Node) => void): void {
  if (typeof value !== 'object' || value === null) return
  if (typeof (value as Node).type === 'string') take(value as Node)
  for (const each of Object.values(value)) visit(each, take)
}

const sources = ['src', 'console', 'packages']
  .flatMap((folder) => fs.globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root }))
  .filter((file) => !file.includes('.test.'))

/** Literals, and whether the file makes others by `new RegExp`. */
function readSource(file: string, text: string): { literals: Found[]; makesOthers: boolean } {
  const literals: Found[] = []
  let makesOthers = false
  visit(parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts' }), ({ type, start, regex, callee }) => {
    const { pattern, flags } = (regex ?? {}) as { pattern?: string; flags?: string }
    const line = (): number => text.slice(0, start).split('\n').length
    if (type === 'Literal' && pattern !== undefined)
      literals.push({ place: `${file}:${line()}`, expression: new RegExp(pattern, flags) })
    if ((type === 'NewExpression' || type === 'CallExpression') && (callee as { name?: string }).name === 'RegExp')
      makesOthers = true
  })
  return { literals, makesOthers }
}

/** What modules make by `new RegExp` when they are loaded. */
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
  const read = sources.map((file) => ({ file, ...readSource(file, fs.readFileSync(path.join(root, file), 'utf8')) }))

  it('regular expressions of the product take linear time', () => {
    const literals = read.flatMap((each) => each.literals)
    assert.ok(literals.length > 400)
    assert.deepEqual(slow(literals), [])
  })

  it('regular expressions that modules of the product put together take linear time', async () => {
    const makers = read.filter(({ makesOthers }) => makesOthers).map(({ file }) => file)
    for (const file of madeLater) assert.ok(makers.includes(file), `${file} makes none`)
    const others = makers.filter((file) => !madeLater.has(file))
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
