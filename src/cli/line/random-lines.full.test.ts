// No command line, however odd, ends in a stack trace, a leaked secret or an unknown exit code.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, it } from 'node:test'
import fc from 'fast-check'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { type FakeService, recordOf, startFakeService } from '../../../test/support/stand-ins/api.ts'

let service: FakeService
let folder: string
before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-lines-'))
  service = await startFakeService()
})
after(async () => {
  fs.rmSync(folder, { recursive: true })
  await service[Symbol.asyncDispose]()
})

const known = [
  'regcred',
  'registrycredential',
  'list',
  'add',
  'remove',
  'dev',
  'server',
  'rotate-master-key',
  'version',
  'help',
]
const options = [
  '-n',
  '-o',
  '-u',
  '-p',
  '-h',
  '--namespace',
  '--output',
  '--quiet',
  '--no-color',
  '--password-stdin',
  '--replace',
]
const more = [
  '--username=me',
  '--password=planted-secret',
  '--allow-insecure',
  '--version',
  '--listen',
  '--nodes',
  '--driver',
  '--toString',
  '--__proto__=x',
  '--constructor',
  '--',
  '-',
  '',
]
const values = [
  'json',
  'yaml',
  'wide',
  'svc-default',
  'https://ghcr.io',
  'http://x:5000',
  '127.0.0.1:0',
  'arm64=1',
  '__proto__',
  'toString',
]
const word = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...known) },
  { weight: 4, arbitrary: fc.constantFrom(...options, ...more) },
  { weight: 4, arbitrary: fc.constantFrom(...values) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }).map((text) => `--${text}`) },
  { weight: 1, arbitrary: fc.string({ maxLength: 4 }).map((text) => `-${text}`) },
)
const beginnings = [
  [],
  ['regcred', 'list'],
  ['regcred', 'remove', 'https://ghcr.io'],
  ['regcred', 'add', 'https://ghcr.io', '-u', 'me'],
  ['regcred', 'add', 'https://ghcr.io', '-u', 'me', '--password-stdin'],
]
const line = fc.tuple(fc.constantFrom(...beginnings), fc.array(word, { maxLength: 7 })).map((parts) => parts.flat())
const exits = [0, 1, 2, 3, 4, 5, 6]

it('any 3,000 command lines end with a known exit code and at most two plain lines on stderr', async () => {
  const env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }
  const seen = new Set<number>()
  const property = fc.asyncProperty(line, fc.string({ maxLength: 6 }), async (words, input) => {
    service.stored.set('svc-default https://ghcr.io', recordOf({ server: 'https://ghcr.io', username: 'me' }))
    const { exitCode, stdout, stderr } = await run(words, { inert: true, env, input, workingDir: folder })
    seen.add(exitCode)
    const errors = stderr
      .split('\n')
      .slice(0, -1)
      .filter((line) => !line.includes('--password-stdin is safer'))
    assert.ok(exits.includes(exitCode), `exit code ${exitCode}`)
    assert.ok(errors.length <= 2 && errors.every((line) => line.startsWith('svc3: ')), stderr)
    assert.ok(!/\n\s+at |planted-secret|TypeError|undefined/.test(stderr), stderr)
    assert.equal(errors.length > 0, exitCode !== 0, stderr)
    assert.ok(exitCode !== 2 || stdout === '', stdout)
  })
  const planted = '--password=planted-secret'
  const examples: [string[], string][] = [
    [['regcred', 'remove', 'https://ghcr.io', '--', planted], ''],
    [['regcred', 'list', '--', planted], ''],
    [['namespace', 'list', '--', planted], ''],
    // Includes every exit code that is required below, independent of the random lines.
    [['regcred', 'list', 'https://nothing.example.com'], ''],
  ]
  await fc.assert(property, { numRuns: 3_000, examples })
  assert.ok(
    [0, 2, 5, 6].every((exitCode) => seen.has(exitCode)),
    [...seen].join(),
  )
})
