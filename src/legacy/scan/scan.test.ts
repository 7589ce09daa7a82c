// The scan on a labelled corpus: the programs in test/fixtures/legacy-scan, one a folder, each with the calls that it makes in
// calls.tsv. They are written for this, in the forms that calls have in scripts and programs.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { legacyLog } from '../../../test/support/tools/legacy-log.ts'
import type { Finding, ScanOptions } from './finding.ts'
import { kindOf } from './kinds.ts'
import { logFindings } from './log.ts'
import { Scan } from './scan.ts'

const corpus = path.resolve(import.meta.dirname, '../../../test/fixtures/legacy-scan')

async function* bytesOf(text: string, size = text.length): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** What is found in files that belong together, by their names. */
async function findingsIn(files: Readonly<Record<string, string>>, options: ScanOptions = {}): Promise<Finding[]> {
  const scan = new Scan(options)
  const found: Finding[] = []
  for (const [file, text] of Object.entries(files)) scan.survey(file, text)
  for (const [file, text] of Object.entries(files))
    if (kindOf(file, text) === 'log') found.push(...(await logFindings(file, bytesOf(text), options)))
    else scan.read(file, text)
  return [...found, ...scan.findings()]
}

const callOf = ({ call: { method, path: place } }: Finding): string => `${method} ${place}`
const rowOf = (finding: Finding): string => `${finding.file}\t${finding.line}\t${callOf(finding)}`

function filesOf(program: string): Record<string, string> {
  const folder = path.join(corpus, program)
  const names = fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'calls.tsv')
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
  return Object.fromEntries(names.map((name) => [name, fs.readFileSync(path.join(folder, name), 'utf8')]))
}

const labelsOf = (program: string): string[] =>
  fs
    .readFileSync(path.join(corpus, program, 'calls.tsv'), 'utf8')
    .split('\n')
    .filter(Boolean)

describe('legacy scan', () => {
  it('the legacy scan has a recall of at least 0.97 and a precision of at least 0.95 on the corpus, strictly 0.99', async (test) => {
    const sums = { labels: 0, found: 0, right: 0, strict: 0, strictlyRight: 0 }
    const problems: string[] = []
    for (const program of fs.readdirSync(corpus)) {
      const labels = new Set(labelsOf(program))
      const findings = await findingsIn(filesOf(program))
      const rows = new Set(findings.map(rowOf))
      const strict = findings.filter(({ confidence }) => confidence === 'certain')
      sums.labels += labels.size
      sums.found += findings.length
      sums.right += findings.filter((each) => labels.has(rowOf(each))).length
      sums.strict += strict.length
      sums.strictlyRight += strict.filter((each) => labels.has(rowOf(each))).length
      for (const label of labels) if (!rows.has(label)) problems.push(`missed in ${program}: ${label}`)
      for (const row of rows) if (!labels.has(row)) problems.push(`wrong in ${program}: ${row}`)
    }
    const recall = sums.right / sums.labels
    const precision = sums.right / sums.found
    const strictly = sums.strictlyRight / sums.strict
    test.diagnostic(
      `${sums.labels} calls: recall ${recall.toFixed(3)}, precision ${precision.toFixed(3)}; ` +
        `--strict: recall ${(sums.strictlyRight / sums.labels).toFixed(3)}, precision ${strictly.toFixed(3)}`,
    )
    for (const problem of problems) test.diagnostic(problem)
    assert.ok(sums.labels >= 400, 'the corpus is there')
    assert.ok(recall >= 0.97 && precision >= 0.95 && strictly >= 0.99, problems.join('\n'))
  })
})

describe('confidence of the legacy scan', () => {
  const confidences = async (files: Readonly<Record<string, string>>): Promise<string[]> =>
    (await findingsIn(files)).map((each) => `${each.file}:${each.line} ${callOf(each)} ${each.confidence}`)

  it('the legacy scan is certain of a path that only 2.4.x has, and of others at the same service', async () => {
    const text = 'BASE=$1\ncurl -X POST "$BASE/token" -d @x\ncurl "$BASE"/resources/vm/list\ncurl "$OTHER/users"\n'
    assert.deepEqual(await confidences({ 'a.sh': text }), [
      'a.sh:2 POST /token certain',
      'a.sh:3 GET /resources/vm/list certain',
    ])
  })

  it('the legacy scan says that a method is likely which is not in sight', async () => {
    const found = await confidences({
      'a.py': 'call(BASE + "/resources/node/sandbox")\nx = ["/resources/vm/deploy"]\n',
    })
    assert.deepEqual(found, ['a.py:1 POST /resources/node/sandbox likely', 'a.py:2 POST /resources/vm/deploy likely'])
  })

  it('the legacy scan takes a path that others have as possible only in a file about the product', async () => {
    const call = (about: string): string => `# ${about}\nrequests.delete(f"{base}/users/{mail}")\n`
    assert.deepEqual(await confidences({ 'a.py': call('Orka users') }), ['a.py:2 DELETE /users/{email} possible'])
    assert.deepEqual(await confidences({ 'a.py': call('users of the shop') }), [])
  })

  it('the legacy scan takes it as likely where files beside it ask the same client for surer ones', async () => {
    const files = {
      'lib/user.rb': 'def go\n  @conn.delete("users/#{@email}")\nend\n',
      'lib/vm.rb': 'def go\n  @conn.get("resources/vm/list")\nend\n',
    }
    assert.deepEqual(await confidences(files), [
      'lib/user.rb:2 DELETE /users/{email} likely',
      'lib/vm.rb:2 GET /resources/vm/list certain',
    ])
  })
})

describe('legacy scan of logs', () => {
  it('the legacy scan of a log counts every call, however the bytes come, in memory that does not grow', async (test) => {
    const { block, calls, lines } = legacyLog(2 ** 21)
    async function* bytes(): AsyncGenerator<Uint8Array> {
      for (let round = 0; round < 16; round++)
        for (let at = 0, size = 1; at < block.length; at += size, size = 1 + ((size * 7_919) % 400_000))
          yield block.subarray(at, at + size)
    }
    const before = process.memoryUsage().rss
    const start = process.cpuUsage()
    const findings = await logFindings('x.log', bytes())
    const { user, system } = process.cpuUsage(start)
    const grownMb = (process.memoryUsage().rss - before) / 1e6
    const rate = (16 * block.length) / (user + system)
    test.diagnostic(`${rate.toFixed(0)} MB/s of processor time, ${grownMb.toFixed(0)} MB more memory for 33 MB of log`)
    assert.deepEqual(
      Object.fromEntries(findings.map((each) => [callOf(each), each.count])),
      Object.fromEntries([...calls].map(([call, count]) => [call, count * 16])),
    )
    assert.ok(findings.every(({ line }) => line >= 1 && line < lines))
    assert.ok(grownMb < 150, `${grownMb} MB`)
  })

  it('the legacy scan of a log knows on which line a call stands first', async () => {
    const text = `${'x\n'.repeat(5_000)}1.1.1.1 - - [x] "GET /resources/vm/list HTTP/1.1" 200 1\n`
    const [finding] = await logFindings('x.log', bytesOf(text, 777))
    assert.deepEqual([finding?.line, finding?.text], [5_001, 'GET /resources/vm/list'])
  })

  it('the legacy scan of a log takes generic paths only beside calls that are surely legacy, or with a base address', async () => {
    const text = '1.1.1.1 - - [x] "GET /orka/users HTTP/1.1" 200 1\n1.1.1.1 - - [x] "GET /users HTTP/1.1" 200 1\n'
    assert.deepEqual(await logFindings('x.log', bytesOf(text)), [])
    const found = await logFindings('x.log', bytesOf(text), { baseUrl: 'http://host/orka' })
    assert.deepEqual(
      found.map(({ line }) => line),
      [1],
    )
    assert.equal((await logFindings('x.log', bytesOf(`${text}"GET /resources/ports HTTP/1.1"\n`))).length, 2)
  })

  it('the legacy scan of a log lives through text that is no log', async () => {
    const noise = Buffer.from(Array.from({ length: 100_000 }, (_, index) => (index * 7_919) % 256))
    async function* bytes(): AsyncGenerator<Uint8Array> {
      yield noise
      yield Buffer.from(`{"method": /resources/vm/list\n"/resources/vm/list`)
    }
    assert.deepEqual(await logFindings('x.log', bytes()), [])
  })
})
