// Repositories of strangers are scanned: whatever is in them, twice as much of it must take about twice as long.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { logFindings } from './log.ts'
import { Scan } from './scan.ts'

/** What made, or could have made, a reader try again from every place. */
const shapes: Readonly<Record<string, (count: number) => string>> = {
  'quotes that nothing closes': (count) => `"\\'\\`.repeat(count),
  'quotes line by line': (count) => `"'\`\n`.repeat(count),
  'insertions that nothing closes': (count) => `"${'${'.repeat(count)}`,
  'insertions in each other': (count) => `x = "${'#{"'.repeat(count)}`,
  'braces and blanks': (count) => `"${'{{   '.repeat(count)}"`,
  'open brackets': (count) => '([{'.repeat(count),
  'closed brackets': (count) => ')]}'.repeat(count),
  'calls in calls': (count) => `${'join(x.join('.repeat(count)}"a"${'))'.repeat(count)}`,
  'casts and new': (count) => '(a) new '.repeat(count),
  'long sums': (count) => `x = ${'a + '.repeat(count)}"/resources/vm/list"\n`,
  'sums on many lines': (count) => 'x = a + "/resources/vm/list"\nget(x)\n'.repeat(count),
  'one variable, assigned and asked again and again': (count) => 'url = "/resources/vm/list"\nurl += "/all"\nget(url)\n'.repeat(count),
  'constants that double': (count) =>
    `A0 = "/resources/vm/list"\n${Array.from({ length: count }, (_, at) => `A${at + 1} = A${at} + A${at}\n`).join('')}`,
  'constants in a circle': (count) => Array.from({ length: count }, (_, at) => `B${at} = B${(at + 1) % count} + "/x"\n`).join(''),
  'definitions in definitions': (count) => 'def a():\n  x = "/resources"\n'.repeat(count),
  'heredocs without an end': (count) => Array.from({ length: count }, (_, at) => `cat <<E${at}\ncurl x\n`).join(''),
  'substitutions in each other': (count) => '"$('.repeat(count),
  'substitutions side by side': (count) => 'curl "$(curl "$(curl x)")" `curl y` '.repeat(count),
  'backticks and dollars': (count) => '`$`${$(('.repeat(count),
  'commands with many options': (count) => `curl ${'-s -X POST "$A" '.repeat(count)}\n`,
  'continued lines': (count) => 'curl \\\n'.repeat(count),
  'keys under keys': (count) => Array.from({ length: Math.min(count, 4_000) }, (_, at) => `${' '.repeat(at % 60)}a: b\n`).join(''),
  'dashes': (count) => `${'- '.repeat(count)}\n`,
  'colons': (count) => `a${': '.repeat(count)}\n`,
  'fences': (count) => '```sh\ncurl "\n'.repeat(count),
  'requests written down': (count) => 'GET /resources/vm/list '.repeat(count),
  'lists in lists': (count) => '['.repeat(count),
  'a list of requests': (count) => `[${'{"method":"GET","url":"\\/resources\\/vm\\/list"},'.repeat(count)}1]`,
  'strings that JSON never ends': (count) => `{"a": "${'\\"'.repeat(count)}`,
  'slashes': (count) => `get("http:${'/'.repeat(count)}")`,
  'blanks': (count) => `${' '.repeat(count)}x`,
  'comments that nothing closes': (count) => '/*'.repeat(count) + '<#'.repeat(count),
  'names with dots': (count) => `x = a${'.b'.repeat(count)}\n`,
} // biome-ignore format: a table

const names = ['a.rb', 'a.py', 'a.java', 'a.go', 'a.ts', 'a.cs', 'a.ps1', 'a.tf', 'a.sh', 'a.yml', 'a.json', 'a.md']

function cpuMs(name: string, text: string): number {
  const start = process.cpuUsage()
  const scan = new Scan()
  scan.survey(name, text)
  scan.read(name, text)
  scan.findings()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1_000
}

describe('hostile texts', () => {
  it('the legacy scan takes a time that grows with the text, not with its square, for each kind of reader', () => {
    const slow: string[] = []
    for (const [shape, textOf] of Object.entries(shapes)) {
      const unit = textOf(50).length / 50
      const [small, large] = [3_000, 48_000].map((length) => textOf(Math.ceil(length / unit)))
      for (const name of names) {
        const once = Math.max(4, cpuMs(name, small ?? ''))
        const many = cpuMs(name, large ?? '')
        // 16 times the text: 16 times the time is linear, 256 times is its square. A second look forgives a busy machine.
        if (many > 64 * once && cpuMs(name, large ?? '') > 64 * Math.max(4, cpuMs(name, small ?? ''))) slow.push(`${name}, ${shape}: ${once.toFixed(0)} ms, then ${many.toFixed(0)} ms`)
      }
    }
    assert.deepEqual(slow, [])
  })

  it('the legacy scan of a log takes a time that grows with the log', async () => {
    const lines = ['"GET '.repeat(20), '{"method":"'.repeat(20), '/resources/'.repeat(20), `"GET ${'/'.repeat(200)}`]
    const cpu = async (count: number): Promise<number> => {
      const start = process.cpuUsage()
      for (const line of lines)
        for (const end of ['\n', ''])
          await logFindings('x.log', (async function* () { yield Buffer.from(`${line}${end}`.repeat(count)) })())
      return process.cpuUsage(start).user / 1_000
    }
    const once = Math.max(5, await cpu(100))
    const many = await cpu(1_600)
    assert.ok(many < 64 * once, `${once} ms, then ${many} ms`)
  })
}) // biome-ignore format: one line
