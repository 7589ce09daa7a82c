// Contexts in the configuration file: which one is used, and how the file is written.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { type FakeService, send, startFakeService } from '../../../test/support/stand-ins/api.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { ApiError } from '../../api/errors.ts'

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
  work.override = undefined
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

  describe('with the data folder of a local server', () => {
    const folderOf = (note: object): string => {
      const data = path.join(folder, 'data')
      fs.mkdirSync(data, { recursive: true })
      fs.writeFileSync(path.join(data, 'connection.json'), JSON.stringify({ ...note, pid: process.pid }))
      return data
    }
    const local = () => folderOf({ apiUrl: lab.apiUrl, adminToken: 'lab-token' })

    it('SVC3_DATA takes precedence over the current context and SVC3_CONTEXT, and leaves its namespace', async () => {
      for (const env of [{}, { SVC3_CONTEXT: 'work' }]) {
        lab.requests.length = 0
        fs.writeFileSync(
          file,
          JSON.stringify({
            currentContext: 'work',
            contexts: { work: { apiUrl: work.apiUrl, token: 'work-token', namespace: 'svc-work' } },
          }),
        )
        const { exitCode, stderr } = await svc3('regcred list', { ...env, SVC3_DATA: local() })
        assert.deepEqual([exitCode, asked(), stderr], [0, 'lab svc-default', ''])
      }
    })

    it('--context and SVC3_API_URL take precedence over SVC3_DATA', async () => {
      await svc3('regcred list --context work', { SVC3_DATA: local() })
      assert.equal(asked(), 'work svc-default')
      work.requests.length = 0
      await svc3('regcred list', { SVC3_DATA: local(), SVC3_API_URL: work.apiUrl })
      assert.equal(asked(), 'work svc-default')
    })

    it('a terminal names the context that SVC3_DATA or SVC3_API_URL overrides', async () => {
      const shown = async (env: Record<string, string>) =>
        (await run(['regcred', 'list'], { env: { XDG_CONFIG_HOME: folder, ...env }, terminal: { stdout: true } }))
          .stderr
      assert.match(await shown({ SVC3_DATA: local() }), /^svc3: Using \S+ \(SVC3_DATA\), not context work\n/)
      assert.match(await shown({ SVC3_API_URL: lab.apiUrl }), /^svc3: Using \S+ \(SVC3_API_URL\), not context work\n/)
      assert.ok(!(await shown({ SVC3_API_URL: work.apiUrl })).includes('context'))
    })

    it('SVC3_DATA without a running server is a failure that names the context, not a request elsewhere', async () => {
      const { exitCode, stderr } = await svc3('regcred list', { SVC3_DATA: '/nowhere/data' })
      assert.deepEqual([exitCode, asked()], [1, ''])
      assert.match(stderr, /No server is running on \/nowhere\/data .*\n.*unset SVC3_DATA to use context work\n/)
      const { stderr: alone } = await run(['regcred', 'list'], {
        env: { SVC3_DATA: '/nowhere/data' },
        typedAs: 'bin/svc3',
      })
      assert.match(alone, /\nsvc3: Run bin\/svc3 dev --data \/nowhere\/data, or unset SVC3_DATA\n$/)
    })

    it('SVC3_DATA with an own token works also with a broken configuration file', async () => {
      fs.writeFileSync(file, '{')
      assert.equal((await svc3('regcred list', { SVC3_DATA: local() })).exitCode, 0)
    })
  })

  it('a refused token is reported with server and context, and how to log in', async () => {
    fs.writeFileSync(
      file,
      JSON.stringify({ currentContext: 'work', contexts: { work: { apiUrl: work.apiUrl, token: 'wrong' } } }),
    )
    const { exitCode, stderr } = await svc3('regcred list')
    assert.equal(exitCode, 3)
    assert.match(
      stderr,
      new RegExp(`Unauthorized.* \\(${work.apiUrl}, context work\\)\nsvc3: Run svc3 login --context work`),
    )
  })

  it('an unknown context is refused with the names of those that exist', async () => {
    const { exitCode, stderr } = await svc3('regcred list --context lob')
    assert.equal(exitCode, 5)
    assert.equal(stderr, `svc3: Context lob not found in ${file}. Did you mean lab?\nsvc3: Choose one of work, lab\n`)
  })
})

describe('whoami', () => {
  const tokenOf = (claims: object): string => `x.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.y`
  const ada = tokenOf({
    sub: 'ada@example.com',
    kind: 'user',
    admin: true,
    exp: Date.parse('2026-11-15T12:00:00Z') / 1e3,
  })
  let own: FakeService
  before(async () => {
    own = await startFakeService(ada)
  })
  after(() => own[Symbol.asyncDispose]())
  const configured = () =>
    fs.writeFileSync(
      file,
      JSON.stringify({ currentContext: 'own', contexts: { own: { apiUrl: own.apiUrl, token: ada } } }),
    )

  it('whoami shows user, role, server, context, namespaces and expiry', async () => {
    configured()
    const { stdout, exitCode } = await svc3('whoami')
    assert.equal(exitCode, 0)
    for (const line of [
      /^User: +ada@example\.com$/m,
      /^Role: +administrator/m,
      /^Server: +http/m,
      /^Context: +own$/m,
      /^Namespace: +svc-default$/m,
      /^Token: +expires in 60 min \(2026-11-15T12:00:00Z\)$/m,
    ])
      assert.match(stdout, line)
    const [shown] = JSON.parse((await svc3('whoami -o json')).stdout)
    assert.deepEqual([shown.user, shown.context, shown.server], ['ada@example.com', 'own', own.apiUrl])
  })

  it('whoami does not say that a token it cannot read never expires', async () => {
    const forEver = tokenOf({ sub: 'ci', kind: 'serviceaccount', namespace: 'svc-ios' })
    for (const [token, user, expiry] of [
      ['opaque', 'unknown', 'expiry unknown'],
      [forEver, 'serviceaccount:svc-ios:ci', 'does not expire'],
    ] as const) {
      await using other = await startFakeService(token)
      const { stdout } = await svc3('whoami', { SVC3_API_URL: other.apiUrl, SVC3_TOKEN: token })
      assert.match(stdout, new RegExp(`^User: +${user}$`, 'm'))
      assert.match(stdout, new RegExp(`^Token: +${expiry}$`, 'm'))
    }
  })

  it('whoami with a bad token is not authenticated', async () => {
    configured()
    assert.equal((await svc3('whoami', { SVC3_TOKEN: 'other' })).exitCode, 3)
  })
})

describe('console', () => {
  it('console prints a link with a ticket where there is no browser, and only the link on standard output', async () => {
    work.override = ({ method, path: url, headers }, response) => {
      assert.deepEqual([method, url, headers.authorization], ['POST', '/console/ticket', 'Bearer work-token'])
      send(response, 201, { ticket: 'once', expiresAt: '2026-11-15T10:00:00Z' })
    }
    const { exitCode, stdout, stderr } = await svc3('console --no-browser')
    assert.deepEqual([exitCode, stdout], [0, `${work.apiUrl}/console/#ticket=once\n`])
    assert.match(stderr, /works once/)
  })

  it('console opens the browser on a page that only its user can read, so that no argument has the ticket', async () => {
    work.override = (_request, response) => send(response, 201, { ticket: 'once', expiresAt: '2026-11-15T10:00:00Z' })
    const bin = path.join(path.dirname(file), 'bin')
    fs.mkdirSync(bin)
    const seen = path.join(bin, 'seen')
    const script = `#!/bin/sh\necho "$@" > "${seen}.part"\nmv "${seen}.part" "${seen}"\n`
    for (const name of ['open', 'xdg-open']) fs.writeFileSync(path.join(bin, name), script, { mode: 0o755 })
    const { exitCode, stdout } = await svc3('console', { DISPLAY: ':7', PATH: `${bin}:${process.env.PATH}` })
    assert.deepEqual([exitCode, stdout.includes('once')], [0, false])
    const [page = ''] = await eventually(async () => fs.readFileSync(seen, 'utf8').trim().split('\n'))
    assert.equal(page, path.join(path.dirname(file), 'console.html'))
    assert.equal(fs.statSync(page).mode & 0o777, 0o600)
    assert.ok(fs.readFileSync(page, 'utf8').includes(`url=${work.apiUrl}/console/#ticket=once"`))
  })

  it('console says so when the server has none', async () => {
    work.override = (_request, response) =>
      send(response, 404, new ApiError('NotFound', 'path not found').toStatus('r'))
    const { exitCode, stderr } = await svc3('console --no-browser')
    assert.equal(exitCode, 1)
    assert.match(stderr, /context work has no console\n/)
  })
})

describe('config', () => {
  const current = () => JSON.parse(fs.readFileSync(file, 'utf8'))

  it('config use-context changes the current context, and nothing else', async () => {
    const before = current()
    const { exitCode, stdout } = await svc3('config use-context lab')
    assert.deepEqual([exitCode, stdout], [0, `Using context lab (${lab.apiUrl}).\n`])
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
    assert.match(stderr, /^svc3: Cannot write \/dev\/null\/svc3\/config\.json \(\w+\)\nsvc3: Check the folder/)
    const nowhere = await run(['config', 'set', '-a', 'https://x.example.com'], { env: {} })
    assert.match(nowhere.stderr, /No place for a configuration file\nsvc3: Set HOME or XDG_CONFIG_HOME/)
  })
})
