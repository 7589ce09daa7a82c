// What `npm pack` makes is a complete program: installed into an empty prefix without a network, it runs from there, as
// command line and as service, and tells an old Node that it is one.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import readline from 'node:readline'
import { after, before, describe, it } from 'node:test'
import about from '../../package.json' with { type: 'json' }
import { formulaFor } from '../../scripts/formula.ts'
import { exec } from '../../src/platform/exec.ts'

/** npm on a machine that has much else to do. */
const timeoutMs = 390_000
const root = path.resolve(import.meta.dirname, '../..')
let folder: string
let env: Record<string, string>
let svc3: string
let tarball: string

/** An old Node, as far as a program can tell. */
const old = `data:text/javascript,${encodeURIComponent(
  "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } })",
)}`

interface Said {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function run(program: string, args: readonly string[], more: Record<string, string> = {}): Promise<Said> {
  const child = spawn(program, args, { cwd: folder, env: { ...env, ...more }, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (said.stdout += chunk))
  child.stderr.on('data', (chunk) => (said.stderr += chunk))
  const [code] = await once(child, 'close')
  return { code, ...said }
}

before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-package-'))
  env = {
    // The Node that runs this test before any other of the machine.
    PATH: `${path.dirname(process.execPath)}:${process.env.PATH ?? ''}`,
    HOME: folder,
    npm_config_cache: path.join(folder, 'npm-cache'),
    npm_config_userconfig: path.join(folder, 'npmrc'),
    npm_config_loglevel: 'error',
  }
  // Without scripts `npm pack` packs what happens to be there, silently: a checkout that is not built gives a package
  // without a program. So nothing may turn them off for it.
  const scripts = await exec('npm', ['config', 'get', 'ignore-scripts'], { cwd: root, env, timeoutMs })
  assert.equal(scripts.stdout.trim(), 'false')
  // `npm test` has built it: to build it again now would take it from under other tests.
  const packed = await exec('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
    env,
    timeoutMs,
  })
  tarball = path.join(folder, packed.stdout.trim().split('\n').at(-1) ?? '')
  const place = ['install', '--global', '--prefix', path.join(folder, 'prefix')]
  await exec('npm', [...place, '--offline', '--no-audit', '--no-fund', tarball], { cwd: folder, env, timeoutMs })
  svc3 = path.join(folder, 'prefix/bin/svc3')
})
after(() => fs.rm(folder, { recursive: true, force: true }))

describe('the package', () => {
  it('the package brings all it needs, and nothing of the checkout besides', async () => {
    const inside = path.join(folder, 'prefix/lib/node_modules/svc3')
    assert.deepEqual((await fs.readdir(path.join(folder, 'prefix/lib/node_modules'))).sort(), ['svc3'])
    for (const absent of ['node_modules', 'src', 'test', 'scripts', '.node', 'dist/cache'])
      await assert.rejects(fs.access(path.join(inside, absent)), { code: 'ENOENT' }, absent)
    const pages = await fs.readdir(path.join(folder, 'prefix/share/man/man1'))
    assert.deepEqual(pages.sort(), (await fs.readdir(path.join(root, 'docs/man'))).sort(), 'man finds every page')
  })

  it('the package knows its version and helps, under both names', async () => {
    const version = await run(svc3, ['--version'])
    assert.equal(version.stdout, `client ${about.version}\n`, version.stderr)
    assert.match(
      (await run(svc3, ['vm', 'list'])).stderr,
      /no context is configured\nsvc3: Run \S*svc3 config set --api-url URL/,
    )
    assert.match((await run(svc3, ['--help'])).stdout, /^svc3 runs macOS[\s\S]*Usage: svc3 /)
    const orka3 = await run(path.join(folder, 'prefix/bin/orka3'), ['vm', '--help'])
    assert.match(orka3.stdout, /Usage: orka3 vm /, orka3.stderr)
  })

  it('the package runs a service, with its pages', async () => {
    const words = ['server', '--listen', '127.0.0.1:0', '--plain-http', '--data', path.join(folder, 'data')]
    const server = spawn(svc3, words, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      let url: string | undefined
      for await (const line of readline.createInterface(server.stdout)) {
        url = /^svc3 ready at (\S+)$/.exec(line)?.[1]
        if (url !== undefined) break
      }
      assert.ok(url !== undefined, 'the server did not start')
      const info = (await (await fetch(`${url}/api/v1/cluster-info`)).json()) as { version: string }
      assert.equal(info.version, about.version)
      const script = await fetch(`${url}/api/v1/swagger/files/swagger-ui-bundle.js`)
      assert.ok(script.status === 200 && (await script.text()).length > 100_000)
      assert.equal((await run(svc3, ['--version'], { SVC3_API_URL: url })).code, 0)
    } finally {
      server.kill('SIGTERM')
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
    }
  })

  it('the package tells an old Node that it is too old', async () => {
    const told = await run(svc3, ['--help'], { NODE_OPTIONS: `--import=${old}` })
    assert.deepEqual([told.code, told.stdout], [1, ''])
    assert.match(told.stderr, /^svc3: svc3 needs Node 24 or newer; this is Node 20\.19\.0 \(.*\)\.\nsvc3: Install/)
  })

  it('the package is what the formula for Homebrew names', async () => {
    const text = await formulaFor(tarball, 'https://example.com/svc3.tgz')
    const sha256 = createHash('sha256')
      .update(await fs.readFile(tarball))
      .digest('hex')
    assert.ok(text.includes(`sha256 "${sha256}"`) && text.includes('url "https://example.com/svc3.tgz"'), text)
    assert.ok(text.includes(`version "${about.version}"`))
    assert.doesNotMatch(text, /\{\{/)
  })
})
