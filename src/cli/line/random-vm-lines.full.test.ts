// No command line about VMs and nodes, however odd, ends in a stack trace, a leaked secret or an unknown exit code.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, it } from 'node:test'
import fc from 'fast-check'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../../test/support/stand-ins/api.ts'
import { changes, serve, vmOf } from '../../../test/support/stand-ins/fleet.ts'

let service: FakeService
let folder: string
before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-lines-'))
  service = await startFakeService()
  serve(service, {
    'GET vms': () => ({ items: [vmOf({ name: 'demo' })] }),
    'POST vms': ({ body }) => vmOf({ name: String(body.name) }),
    'POST vms/demo/exec': () => vmOf({ name: 'demo' }),
    'POST vms/demo/resize': () => vmOf({ name: 'demo' }),
    'WATCH vms': changes(),
  })
})
after(async () => {
  fs.rmSync(folder, { recursive: true })
  await service[Symbol.asyncDispose]()
})

/** Excludes commands that would never end against this service. */
const beginnings = [
  'vm',
  'vm list',
  'vm deploy',
  'vm deploy demo -i x',
  'vm delete',
  'vm delete demo',
  'vm stop demo',
  'vm revert demo',
  'vm resize demo 120',
  'vm extend demo',
  'vm logs demo',
  'vm connect nobody',
  'vm ssh nobody --',
  'vm vnc nobody',
  'vm-config create a -i x',
  'node drain a --wait',
  'node tag a',
  'node join-token',
].map((line) => line.split(' '))
const options = [
  ...['-i', '-c', '-m', '-p', '-g', '-u', '-o', '-n', '-f', '-t', '-h', '--', '-', '--quiet', '--yes', '--force'],
  ...[
    '--config',
    '--ports',
    '--label',
    '--ttl',
    '--timeout',
    '--no-wait',
    '--generate-name',
    '--tag',
    '--tag-required',
  ],
  ...['--metadata=planted-secret', '--metadata=k=planted-secret', '--password=planted-secret', '--password-stdin'],
  ...['--userdata', '--owner', '--tail', '--memory=planted', '--display-dpi', '--scheduler', '--wait', '--__proto__=x'],
]
const values = [
  'demo',
  'me',
  'json',
  'wide',
  '4',
  '4.8',
  '0',
  '2h',
  'a=b',
  'a=b,c',
  '80:80',
  '9000:80',
  'svc-ios',
  '',
  '..',
]
const word = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...options) },
  { weight: 4, arbitrary: fc.constantFrom(...values) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 8 }).map((text) => `--${text}`) },
)
const line = fc.tuple(fc.constantFrom(...beginnings), fc.array(word, { maxLength: 6 })).map((parts) => parts.flat())
const said = /^(svc3: |Waiting for VM [a-z0-9-]+ to be deployed\.$)/

it('any 800 lines about VMs and nodes end with a known exit code, in plain lines', async () => {
  const env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }
  const seen = new Set<number>()
  const property = fc.asyncProperty(line, fc.string({ maxLength: 6 }), async (words, input) => {
    const { exitCode, stdout, stderr } = await run(words, { inert: true, env, input, workingDir: folder })
    seen.add(exitCode)
    const lines = stderr.split('\n').slice(0, -1)
    assert.ok([0, 1, 2, 5].includes(exitCode), `exit code ${exitCode}: ${stderr}`)
    assert.ok(
      lines.every((text) => said.test(text)),
      stderr,
    )
    assert.ok(!/\n\s+at |planted-secret|TypeError|undefined/.test(stderr + stdout), stderr + stdout)
    assert.ok(exitCode !== 2 || stdout === '', stdout)
    assert.ok(exitCode === 0 || lines.length > 0)
  })
  // Includes every exit code that is required below, independent of the random lines.
  const examples: [string[], string][] = [
    'vm list',
    'vm deploy demo -i x --userdata absent',
    'vm list --what',
    'vm connect nobody',
  ].map((words) => [words.split(' '), ''])
  await fc.assert(property, { numRuns: 800, examples })
  assert.ok(
    [0, 1, 2, 5].every((exitCode) => seen.has(exitCode)),
    [...seen].join(),
  )
})
