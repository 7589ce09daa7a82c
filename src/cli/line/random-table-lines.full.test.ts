// Runs each command of the table with random options against a service without records: the exit code is known, and the
// output has no secret. With the lines about credentials and VMs, these are 5,000 command lines.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, it } from 'node:test'
import fc from 'fast-check'
import { pagesOf } from '../../../scripts/reference/pages.ts'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../../test/support/stand-ins/api.ts'
import { serve } from '../../../test/support/stand-ins/fleet.ts'
import { everywhere, type Options } from '../command.ts'

let service: FakeService
let folder: string
before(async () => {
  service = await startFakeService()
  serve(service, {})
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-lines-'))
  // "migrate scan .." would otherwise read all files in the folder for temporary files.
  fs.mkdirSync(path.join(folder, 'inside'))
})
after(async () => {
  fs.rmSync(folder, { recursive: true })
  await service[Symbol.asyncDispose]()
})

const secret = 'planted-secret'
const values = [
  'demo',
  'svc-ios',
  '4',
  '0',
  '-1',
  '2h',
  'a=b',
  'https://ghcr.io',
  'json',
  'none',
  'x/y',
  '',
  ' ',
  '..',
  'é',
  '日本',
]
const value = fc.oneof(fc.constantFrom(...values), fc.string({ unit: 'binary', maxLength: 10 }))
const commands = (await pagesOf()).flatMap(({ words, command }) => (command ? [{ words, command }] : []))

/** An option with or without a value, a word, or sometimes an invalid one. */
const line = fc.constantFrom(...commands).chain(({ words, command }) => {
  const options: Options = { ...command.options, ...everywhere }
  const names = Object.entries(options).filter(([name]) => name !== 'debug')
  const option = fc
    .tuple(fc.constantFrom(...names), value, fc.integer({ min: 0, max: 4 }))
    .map(([[name, { type, secret: isSecret, short }], text, form]) => {
      const given = isSecret ? secret : text
      const forms = [
        [`--${name}`, given],
        [`--${name}=${given}`],
        [`--${name}`],
        [short ? `-${short}` : `--${name}`, given],
      ]
      return (type === 'boolean' && form < 3 ? [`--${name}`] : forms[form]) ?? [`--${name}x`]
    })
  const word = fc.oneof(
    { weight: 3, arbitrary: option },
    { weight: 3, arbitrary: value.map((text) => [text]) },
    { weight: 1, arbitrary: fc.constantFrom(['--'], ['-'], ['--nope'], ['-Z'], ['--__proto__=x']) },
  )
  return fc.array(word, { maxLength: 5 }).map((parts) => [...words, ...parts.flat()])
})
const said = /^(svc3: |Waiting for VM [a-z0-9-]+ to be deployed\.$)/
const exits = [0, 1, 2, 3, 5, 6]

it('any 1,200 lines of commands with random options end with a known exit code, in plain lines, without a secret', async () => {
  const env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token, XDG_CONFIG_HOME: folder, PATH: '/nowhere' }
  const property = fc.asyncProperty(line, fc.string({ maxLength: 6 }), async (words, input) => {
    const { exitCode, stdout, stderr } = await run(words, {
      inert: true,
      env,
      input,
      workingDir: path.join(folder, 'inside'),
    })
    const lines = stderr.split('\n').slice(0, -1)
    assert.ok(exits.includes(exitCode), `exit code ${exitCode}: ${stderr}`)
    for (const text of lines) assert.match(text, said)
    assert.ok(!new RegExp(`\\n\\s+at |${secret}|TypeError|undefined|\\[object`).test(stderr), stderr)
    assert.ok(exitCode !== 2 || stdout === '', stdout)
    // If a service does not run or a host is not suitable, the exit code says so.
    assert.ok(exitCode === 0 || lines.length > 0 || (exitCode === 1 && stdout !== ''))
  })
  await fc.assert(property, { numRuns: 1_200 })
})
