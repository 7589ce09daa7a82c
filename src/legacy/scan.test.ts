// The scan on a labelled set: every line of test/fixtures/legacy-scan, with what it should find in labels.tsv.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { legacyLog } from '../../test/support/tools/legacy-log.ts'
import type { Finding, ScanOptions } from './finding.ts'
import { kindOf, textFindings } from './scan.ts'
import { logFindings } from './scan-log.ts'

const folder = path.resolve(import.meta.dirname, '../../test/fixtures/legacy-scan')
const read = (file: string): string => fs.readFileSync(path.join(folder, file), 'utf8')

async function* bytesOf(text: string, size = text.length): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function findingsIn(file: string, text: string, options: ScanOptions = {}): Promise<Finding[]> {
  const kind = kindOf(file, text)
  assert.notEqual(kind, 'binary')
  return kind === 'log' ? logFindings(bytesOf(text), options) : textFindings(kind as 'text', text, options)
}

const callOf = ({ call: { method, path: place } }: Finding): string => `${method} ${place}`
const files = fs.readdirSync(folder).filter((file) => file !== 'labels.tsv')
const labels = read('labels.tsv').trim().split('\n')

describe('legacy scan', () => {
  it('the legacy scan has precision and recall of at least 0.95 on the labelled set', async (test) => {
    const found: string[] = []
    let lines = 0
    for (const file of files) {
      const text = read(file)
      lines += text.split('\n').filter((line) => line.trim() !== '').length
      for (const finding of await findingsIn(file, text)) found.push(`${file}\t${finding.line}\t${callOf(finding)}`)
    }
    const right = found.filter((each) => labels.includes(each))
    const precision = right.length / found.length
    const recall = right.length / labels.length
    test.diagnostic(
      `${lines} lines, ${labels.length} calls: precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)}`,
    )
    const wrong = found.filter((each) => !labels.includes(each)).map((each) => `wrong: ${each}`)
    const missed = labels.filter((each) => !found.includes(each)).map((each) => `missed: ${each}`)
    for (const each of [...wrong, ...missed]) test.diagnostic(each)
    assert.ok(lines >= 200 && labels.length >= 100)
    assert.ok(precision >= 0.95 && recall >= 0.95, [...wrong, ...missed].join('\n'))
  })
})

describe('legacy scan of scripts', () => {
  for (const [file, what] of [
    ['notes.md', 'has the method of a request that is written down'],
    ['variables.sh', 'counts an address in a variable once, where it is called'],
  ] as const)
    it(`the legacy scan ${what}`, async () => {
      const found = (await findingsIn(file, read(file))).map((each) => `${file}\t${each.line}\t${callOf(each)}`)
      assert.deepEqual(
        found,
        labels.filter((label) => label.startsWith(file)),
      )
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
    const findings = await logFindings(bytes())
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
    const [finding] = await logFindings(bytesOf(text, 777))
    assert.deepEqual([finding?.line, finding?.text], [5_001, 'GET /resources/vm/list'])
  })

  it('the legacy scan of a log takes generic paths only beside calls that are surely legacy, or with a base address', async () => {
    const text = '1.1.1.1 - - [x] "GET /orka/users HTTP/1.1" 200 1\n1.1.1.1 - - [x] "GET /users HTTP/1.1" 200 1\n'
    assert.deepEqual(await logFindings(bytesOf(text)), [])
    const found = await logFindings(bytesOf(text), { baseUrl: 'http://host/orka' })
    assert.deepEqual(
      found.map(({ line }) => line),
      [1],
    )
    assert.equal((await logFindings(bytesOf(`${text}"GET /resources/ports HTTP/1.1"\n`))).length, 2)
  })

  it('the legacy scan of a log lives through text that is no log', async () => {
    const noise = Buffer.from(Array.from({ length: 100_000 }, (_, index) => (index * 7_919) % 256))
    async function* bytes(): AsyncGenerator<Uint8Array> {
      yield noise
      yield Buffer.from(`{"method": /resources/vm/list\n"/resources/vm/list`)
    }
    assert.deepEqual(await logFindings(bytes()), [])
  })
})
