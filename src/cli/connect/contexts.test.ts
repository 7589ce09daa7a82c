// Several services: contexts in the configuration file, which of them is used, and how the file is written.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../../test/support/stand-ins/api.ts'

let folder: string
let file: string
let work: FakeService
let lab: FakeService
before(async () => {
  work = await startFakeService('work-token')
  lab = await startFakeService('lab-token')
})
after(async () => {
  await work[Symbol.asyncDispose]()
  await lab[Symbol.asyncDispose]()
})
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-contexts-'))
  file = path.join(folder, 'svc3/config.json')
  fs.mkdirSync(path.dirname(file))
  const contexts = {
    work: { apiUrl: work.apiUrl, token: 'work-token' },
    lab: { apiUrl: lab.apiUrl, token: 'lab-token', namespace: 'svc-lab' },
  }
  fs.writeFileSync(file, JSON.stringify({ currentContext: 'work', contexts, ours: 'kept' }))
  work.requests.length = 0
  lab.requests.length = 0
})
after(() => fs.rmSync(folder, { recursive: true }))

const svc3 = (line: string, env: Record<string, string> = {}) =>
  run(line.split(' '), { env: { XDG_CONFIG_HOME: folder, ...env } })
const asked = (): string => {
  const place = (service: FakeService, name: string) =>
    service.requests.map((request) => `${name} ${/namespaces\/([^/]+)/.exec(request.path)?.[1]}`)
  return [...place(work, 'work'), ...place(lab, 'lab')].join()
}

describe('contexts', () => {
  const cases: readonly (readonly [string, Record<string, string>, string])[] = [
    ['regcred list', {}, 'work svc-default'],
    ['regcred list --context lab', {}, 'lab svc-lab'],
    ['--context lab regcred list', {}, 'lab svc-lab'],
    ['regcred list', { SVC3_CONTEXT: 'lab' }, 'lab svc-lab'],
    ['regcred list --context work', { SVC3_CONTEXT: 'lab' }, 'work svc-default'],
    ['regcred list --context lab -n svc-x', {}, 'lab svc-x'],
    ['regcred list --context lab', { SVC3_DEFAULT_NAMESPACE: 'svc-env' }, 'lab svc-env'],
    ['regcred list --context lab', { ORKA_DEFAULT_NAMESPACE: 'svc-orka' }, 'lab svc-orka'],
    ['regcred list', { SVC3_DEFAULT_NAMESPACE: 'svc-env', ORKA_DEFAULT_NAMESPACE: 'svc-orka' }, 'work svc-env'],
    ['regcred list --context lab', { SVC3_API_URL: 'http://127.0.0.1:1', SVC3_TOKEN: 'x' }, 'lab svc-lab'],
  ]
  for (const [line, env, wanted] of cases)
    it(`${JSON.stringify(env)} svc3 ${line}: ${wanted}`, async () => {
      const { exitCode, stderr } = await svc3(line, env)
      assert.equal(exitCode, 0, stderr)
      assert.equal(asked(), wanted)
    })

  it('SVC3_API_URL takes precedence over the context of the environment', async () => {
    const { exitCode } = await svc3('regcred list', { SVC3_API_URL: work.apiUrl, SVC3_CONTEXT: 'lab' })
    assert.deepEqual([exitCode, asked()], [0, 'work svc-default'])
  })

  it('an unknown context is refused with the names of those that exist', async () => {
    const { exitCode, stderr } = await svc3('regcred list --context lob')
    assert.equal(exitCode, 5)
    assert.equal(stderr, `svc3: context "lob" not found in ${file}; did you mean "lab"?\nsvc3: there are work, lab\n`)
  })
})

describe('config', () => {
  const current = () => JSON.parse(fs.readFileSync(file, 'utf8'))

  it('config use-context changes the current context, and nothing else', async () => {
    const before = current()
    const { exitCode, stdout } = await svc3('config use-context lab')
    assert.deepEqual([exitCode, stdout], [0, `Context lab is in use, with ${lab.apiUrl}.\n`])
    assert.deepEqual(current(), { ...before, currentContext: 'lab' })
    await svc3('regcred list')
    assert.equal(asked(), 'lab svc-lab')
    assert.equal((await svc3('config use-context nope')).exitCode, 5)
    assert.match((await svc3('config use-context lab', { SVC3_API_URL: 'http://x' })).stderr, /SVC3_API_URL is set/)
  })

  it('config set makes a context and uses it; the file is whole, private, and keeps unknown fields', async () => {
    const { exitCode } = await svc3('config set -a https://new.example.com --context new --namespace svc-new')
    assert.equal(exitCode, 0)
    const { currentContext, contexts, ours } = current()
    assert.deepEqual([currentContext, ours], ['new', 'kept'])
    assert.deepEqual(contexts.new, { apiUrl: 'https://new.example.com', namespace: 'svc-new' })
    assert.equal(contexts.work.token, 'work-token')
    assert.equal(fs.statSync(file).mode & 0o777, 0o600)
    assert.deepEqual(
      fs.readdirSync(path.dirname(file)).filter((name) => name.endsWith('.tmp')),
      [],
    )
  })

  it('many concurrent config set commands lose nothing', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `c${index}`)
    await Promise.all(names.map((name) => svc3(`config set -a https://${name}.example.com --context ${name}`)))
    for (const name of names) assert.equal(current().contexts[name].apiUrl, `https://${name}.example.com`)
  })

  it('config view shows everything but tokens', async () => {
    const { stdout } = await svc3('config view -o json')
    assert.deepEqual(
      JSON.parse(stdout).map(({ name, current }: { name: string; current: boolean }) => [name, current]),
      [
        ['work', true],
        ['lab', false],
      ],
    )
    assert.ok(!stdout.includes('-token'))
  })

  it('config set says so when the config file cannot be written', async () => {
    const { exitCode, stderr } = await svc3('config set -a https://x.example.com', {
      XDG_CONFIG_HOME: '/dev/null',
    })
    assert.equal(exitCode, 1)
    assert.match(stderr, /^svc3: cannot write \/dev\/null\/svc3\/config\.json \(\w+\)\nsvc3: check the folder/)
    const nowhere = await run(['config', 'set', '-a', 'https://x.example.com'], { env: {} })
    assert.match(nowhere.stderr, /there is no place for a configuration file\nsvc3: set HOME or XDG_CONFIG_HOME/)
  })
})
