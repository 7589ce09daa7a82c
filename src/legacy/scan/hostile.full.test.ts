// Repositories of strangers are scanned: whatever is in them, four times as much of it must take about four times as long.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { logFindings } from './log.ts'
import { Scan } from './scan.ts'

/** A piece again and again; what stands before and behind the pieces stays. */
const many =
  (piece: string, before = '', behind = '') =>
  (size: number): string =>
    before + piece.repeat(Math.ceil(size / piece.length)) + behind
/** So many of each, one kind after the other: what opens, what is inside, what closes. */
const runs =
  (...pieces: string[]) =>
  (size: number): string =>
    pieces.map((piece) => piece.repeat(Math.ceil(size / pieces.join('').length))).join('')
const numbered =
  (piece: (at: number) => string) =>
  (size: number): string =>
    Array.from({ length: Math.ceil(size / piece(1_000).length) }, (_, at) => piece(at)).join('')

const path = '"/resources/vm/list"'
const programs = ['a.rb', 'a.kt', 'a.ps1']

/** What made, or could have made, a reader try again from every place. Longer lines than 20 kB are not read. */
const shapes: readonly (readonly [files: string | readonly string[], shape: string, textOf: (size: number) => string])[] = [
  // Strings and what is put into them.
  ['a.ts', 'insertions that nothing closes, a line each', many('`${`\n')],
  ['a.kt', 'insertions that nothing closes, on lines of 19 kB', many(`${'"${" '.repeat(3_800)}\n`)],
  ['a.rb', 'insertions in each other', many(`${'#{"'.repeat(100)}\n`)],
  ['a.swift', 'insertions with escapes', many('"\\("\\\\\n')],
  ['a.cs', 'insertions in braces', many('$"{" @"{{"\n')],
  ['a.ps1', 'insertions in brackets', many('"$(" "${"\n')],
  ['a.tf', 'braces and blanks', many('"{{   "\n')],
  [programs, 'quotes that nothing closes', many('"\\\'\\`\n')],
  ['a.py', 'strings on a line behind one of several lines', many('"a" ', '"""\n"""')],
  ['a.py', 'texts that many things are put into, beside calls', (size) => `{f"""${'{a}\n'.repeat(size / 8)}""": {\n${`"x": ${path},\n`.repeat(size / 40)}}}`],
  ['a.java', 'comments that nothing closes', many('/*\n')],
  ['a.ps1', 'comments that nothing closes', many('<#\n')],
  // Brackets.
  [programs, 'brackets in each other', runs('([{\n', ')]}\n')],
  ['a.py', 'assignments in many brackets', runs('[\n', 'x = "a"\n')],
  ['a.ts', 'assignments in many brackets of blocks', runs('{[(\n', 'x = "a"\n')],
  ['a.py', 'minus signs before a text', many('- \n', 'f(', `"x", ${path})`)],
  ['a.ts', 'calls in brackets that close behind all of them', runs('(\n', `(${path})\n`, ')\n')],
  ['a.js', 'calls in many brackets that go on', runs('f([\n', `${path},\n`, ']!)\n')],
  ['a.rb', 'keys in keys', many('[x\n]', 'a')],
  ['a.go', 'calls in calls', runs('join(x.join(\n', '"a"', '))\n')],
  ['a.java', 'casts and new', many('(a) new\n')],
  ['a.rb', 'a command of many words', (size) => `["curl",\n${runs('a,\n', `${path},\n`)(size)}]`],
  // What is looked for around a call.
  ['a.py', 'a list of paths', many(`${path},\n`, '[', ']')],
  ['a.kt', 'paths in calls in calls', many(`f(f(f(f(f(f(f(f(${path}, a), a), a), a), a), a), a), a)\n`)],
  ['a.ts', 'one variable, assigned and asked again and again', many('url = "/resources/vm/list"\nurl += "/all"\nget(url)\n')],
  ['a.py', 'variables in brackets', many(`x = ${path} f(x) x x x x\n`, '[[[[[[[[')],
  ['a.go', 'calls of a name with very many dots', (size) => `${'a.b'.repeat(5_000)}(\n${many(`${path},\n`)(size)})`],
  ['a.groovy', 'calls that are continued', many(`a(${path})\n  .b(c)!)\n`)],
  ['a.php', 'long sums', many('$a . "/x" .\n', 'x = ')],
  // Names.
  ['a.rb', 'constants that double', numbered((at) => `A${at + 1} = A${at} + A${at}\n`)],
  ['a.java', 'constants in a circle', numbered((at) => `String B${at % 50} = B${(at + 1) % 50} + "/resources/" + B${at % 7};\n`)],
  ['a.sh', 'addresses of slashes', many('curl $X/resources/vm/list\n', `X=http:${'/'.repeat(500)}x\n`)],
  ['a.py', 'definitions in definitions', many('def a():\n  x = "/resources"\n')],
  ['a.cs', 'short assignments', many('X=E\n')],
  // Scripts.
  ['a.sh', 'marks of a name that nothing closes', many('\uE000')],
  ['a.sh', 'marks of a name in quotes', many('\uE000', "'", "'")],
  ['a.sh', 'substitutions in each other', many('"$(')],
  ['a.sh', 'substitutions side by side', many('curl "$(curl "$(curl x)")" `curl y` ')],
  ['a.sh', 'backticks and dollars', many('`$`${$(( ')],
  ['a.sh', 'heredocs without an end', numbered((at) => `cat <<E${at}\ncurl x\n`)],
  ['a.sh', 'a command with many options', many('-s -X POST "$A" ', 'curl ')],
  ['a.sh', 'an array that nothing closes', many('a=(')],
  ['Makefile', 'continued lines', many('curl \\\n')],
  // Pages, pipelines, collections.
  ['a.yml', 'blanks in values, lines of 20 kB', many(`a: b${' '.repeat(19_000)}c\n`)],
  ['a.yml', 'comments in a value that ends with a quote', many(`a: b${' #'.repeat(9_000)}"\n`)],
  ['a.yml', 'keys under keys', numbered((at) => `${' '.repeat(at % 60)}a: b\n`)],
  ['a.yml', 'dashes and colons', many(`${'- '.repeat(500)}a${': '.repeat(500)}\n`)],
  ['a.yml', 'values of many lines', many('  curl x # y\n\n', 'a: b\n')],
  ['a.yml', 'lists of paths', many(`a: [${path}, {b: ${path}}]\n`)],
  ['a.md', 'blanks before a command, lines of 20 kB', many(`${' '.repeat(19_000)}x curl y\n`)],
  ['a.md', 'blanks behind a quotation, lines of 20 kB', many(`> ${' '.repeat(19_000)}x curl y\n`)],
  ['a.md', 'requests with dots', many(`GET /${'.'.repeat(590)}x\n`)],
  ['a.md', 'fences and quotes', many('```sh\ncurl "\n')],
  ['a.md', 'commands that are continued', many('curl x \\   \n')],
  ['a.http', 'requests', many('GET /resources/vm/list\n')],
  ['a.json', 'lists in lists', many('[')],
  ['a.json', 'a list of requests', many('{"method":"GET","url":"\\/resources\\/vm\\/list"},', '[', '1]')],
  ['a.json', 'strings that nothing ends', many('\\"', '{"a": "')],
  ['a.json', 'blanks and commands', many(`{"curl ": "${' '.repeat(500)}"},`, '[', '1]')],
  ['a.json', 'an OpenAPI document', (size) => `{"openapi":"3","paths":{${numbered((at) => `"/users/{${at}": {"get":{}},`)(size)}"/a":{}}}`],
] // biome-ignore format: a table

function cpuMs(work: () => void): number {
  const start = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1_000
}

function scanAll(files: Iterable<readonly [name: string, text: string]>): void {
  const scan = new Scan()
  for (const [name, text] of files) scan.survey(name, text)
  for (const [name, text] of files) scan.read(name, text)
  scan.findings()
}

const smallest = 2 ** 15
const sizes = [smallest, 4 * smallest, 16 * smallest]
/** `times` the text may take three times as many times as long as the smallest; its square would be 16 and 256 times as long. */
const isLinear = (smallestMs: number, ms: number, times: number): boolean => ms <= 3 * times * smallestMs + 100
/** Some 16 s a MiB: dense programs take 3 s on a free machine. */
const isQuick = (size: number, time: number): boolean => time <= 500 + size / 64
/** What takes so long for 128 KiB is not measured with more: a square shows by then. */
const enoughMs = 500

/** What is wrong about how the time of something grows. */
function growth(work: (size: number) => void): string | undefined {
  work(smallest / 4)
  const times: number[] = []
  for (const size of sizes) {
    const [first] = times
    const isGood = (time: number): boolean =>
      isQuick(size, time) && (first === undefined || isLinear(first, time, size / smallest))
    let time = cpuMs(() => work(size))
    // A second look forgives a busy machine.
    if (!isGood(time))
      time = Math.min(
        time,
        cpuMs(() => work(size)),
      )
    times.push(Math.round(time))
    if (!isGood(time)) return `${times.join(', ')} ms`
    if (first !== undefined && time > enoughMs) break
  }
  return undefined
}

describe('hostile texts', () => {
  for (const [files, shape, textOf] of shapes)
    it(`the legacy scan takes a time that grows with the text, not with its square: ${shape}, ${files}`, () => {
      for (const file of [files].flat())
        assert.equal(
          growth((size) => scanAll([[file, textOf(size)]])),
          undefined,
          file,
        )
    })

  it('the legacy scan takes a time that grows with the number of files', () => {
    const textOf = (at: number): string => (at % 2 === 0 ? 'curl $X/resources/vm/list\n' : 'f $X/users\n')
    const filesOf = (size: number) =>
      Array.from({ length: size / 16 }, (_, at) => [`d${at}/a/b/c.sh`, textOf(at)] as const)
    assert.equal(
      growth((size) => scanAll(filesOf(size))),
      undefined,
    )
  })

  it('the legacy scan of a log takes a time that grows with the log', async () => {
    const lines = ['"GET '.repeat(20), '{"method":"'.repeat(20), '/resources/'.repeat(20), `"GET ${'/'.repeat(200)}`, `{"path"${' '.repeat(200)}:`]
    const cpu = async (count: number): Promise<number> => {
      const start = process.cpuUsage()
      for (const line of lines)
        for (const end of ['\n', ''])
          await logFindings('x.log', (async function* () { yield Buffer.from(`${line}${end}`.repeat(count)) })())
      return process.cpuUsage(start).user / 1_000
    }
    const once = await cpu(1_200)
    const more = await cpu(4_800)
    assert.ok(isLinear(once, more, 4), `${once} ms, then ${more} ms`)
  }) // biome-ignore format: one line
})
