// The scan of labelled files: each folder of test/fixtures/legacy-scan is a program with its expected findings in calls.tsv.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { legacyLog } from '../../../test/support/tools/legacy-log.ts'
import type { Finding, ScanOptions } from './finding.ts'
import { kindOf } from './kinds.ts'
import { logFindings } from './log.ts'
import { scanText } from './scan.ts'

const corpus = path.resolve(import.meta.dirname, '../../../test/fixtures/legacy-scan')

async function* bytesOf(text: string, size = text.length): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const callOf = ({ call: { method, path: place } }: Finding): string => `${method} ${place}`

async function rowsIn(file: string, text: string, options: ScanOptions = {}): Promise<string[]> {
  const findings =
    kindOf(file, text) === 'log' ? await logFindings(file, bytesOf(text), options) : scanText(file, text, options)
  return findings.map((each) => `${file}\t${each.line}\t${callOf(each)}\t${each.confidence}`)
}

async function rowsOf(program: string): Promise<string[]> {
  const folder = path.join(corpus, program)
  const entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isFile() && entry.name !== 'calls.tsv')
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .toSorted()
  return (await Promise.all(names.map((name) => rowsIn(name, fs.readFileSync(path.join(folder, name), 'utf8'))))).flat()
}

describe('legacy scan', () => {
  for (const program of fs.readdirSync(corpus))
    it(`the legacy scan finds the labelled calls of ${program}, with their confidence`, async () => {
      const labels = fs
        .readFileSync(path.join(corpus, program, 'calls.tsv'), 'utf8')
        .split('\n')
        .filter(Boolean)
      assert.deepEqual(await rowsOf(program), labels)
    })

  it('the legacy scan is certain of paths that only 2.4.x has, and of other paths at the same address', async () => {
    const text = 'BASE=$1\ncurl -X POST "$BASE/token" -d @x\ncurl "$BASE"/resources/vm/list\ncurl "$OTHER/users"\n'
    assert.deepEqual(await rowsIn('a.sh', text), [
      'a.sh\t2\tPOST /token\tcertain',
      'a.sh\t3\tGET /resources/vm/list\tcertain',
    ])
  })

  it('the legacy scan resolves a constant that has a default in a shell', async () => {
    const text = `VMS=/resources/vm\ncurl -X POST "\${VMS:-x}/deploy"\n`
    assert.deepEqual(await rowsIn('a.sh', text), ['a.sh\t2\tPOST /resources/vm/deploy\tcertain'])
  })

  it('the legacy scan rates an inferred method as likely', async () => {
    const text = 'call(BASE + "/resources/node/sandbox")\n\nx = ["/resources/vm/deploy"]\n'
    assert.deepEqual(await rowsIn('a.py', text), [
      'a.py\t1\tPOST /resources/node/sandbox\tlikely',
      'a.py\t3\tPOST /resources/vm/deploy\tlikely',
    ])
  })

  it('the legacy scan rates a shared path as possible only in a file that mentions the product', async () => {
    const call = (about: string): string => `# ${about}\nrequests.delete(f"{base}/users/{mail}")\n`
    assert.deepEqual(await rowsIn('a.py', call('Orka users')), ['a.py\t2\tDELETE /users/{email}\tpossible'])
    assert.deepEqual(await rowsIn('a.py', call('users of the shop')), [])
  })

  it('the legacy scan joins constants of the same file', async () => {
    const text = 'String VM = "/resources/vm";\nhttp.post(address + VM + "/deploy", body);\n'
    assert.deepEqual(await rowsIn('a.java', text), ['a.java\t2\tPOST /resources/vm/deploy\tcertain'])
  })

  it('the legacy scan skips comments', async () => {
    const call = 'post("/resources/vm/deploy")'
    assert.deepEqual(await rowsIn('a.ts', `// ${call}\n/*\n * ${call}\n */\nx() // ${call}\n`), [])
    assert.deepEqual(await rowsIn('a.py', `# ${call}\n"""\n${call}\n"""\n`), [])
  })
})

describe('legacy scan of logs', () => {
  it('the legacy scan of a log counts every call with any chunking, in constant memory', async (test) => {
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

  it('the legacy scan of a log reports the first line of a call', async () => {
    const text = `${'x\n'.repeat(5_000)}1.1.1.1 - - [x] "GET /resources/vm/list HTTP/1.1" 200 1\n`
    const [finding] = await logFindings('x.log', bytesOf(text, 777))
    assert.deepEqual([finding?.line, finding?.text], [5_001, 'GET /resources/vm/list'])
  })

  it('the legacy scan of a log counts shared paths only with certain calls in the log, or with a base address', async () => {
    const text = '1.1.1.1 - - [x] "GET /orka/users HTTP/1.1" 200 1\n1.1.1.1 - - [x] "GET /users HTTP/1.1" 200 1\n'
    assert.deepEqual(await logFindings('x.log', bytesOf(text)), [])
    const found = await logFindings('x.log', bytesOf(text), { baseUrl: 'http://host/orka' })
    assert.deepEqual(
      found.map(({ line }) => line),
      [1],
    )
    assert.equal((await logFindings('x.log', bytesOf(`${text}"GET /resources/ports HTTP/1.1"\n`))).length, 2)
  })

  it('the legacy scan of a log survives text that is not a log', async () => {
    const noise = Buffer.from(Array.from({ length: 100_000 }, (_, index) => (index * 7_919) % 256))
    async function* bytes(): AsyncGenerator<Uint8Array> {
      yield noise
      yield Buffer.from(`{"method": /resources/vm/list\n"/resources/vm/list`)
    }
    assert.deepEqual(await logFindings('x.log', bytes()), [])
  })
})
