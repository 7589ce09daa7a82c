// The scan on a labelled set: every line of test/fixtures/legacy-scan, with what it should find in labels.tsv.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
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

describe('the scan', () => {
  it('has precision and recall of at least 0.95 on the labelled set', async (test) => {
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
