// The program as a process: pipes, files, signals. Started from the sources, so that the tests need no build.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type FakeService, recordOf, startFakeService } from '../../test/support/stand-ins/api.ts'

const root = path.resolve(import.meta.dirname, '../..')
const entry = path.join(root, 'src/bin/svc3.ts')
let folder: string
let service: FakeService
before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-process-'))
  service = await startFakeService()
})
after(async () => {
  fs.rmSync(folder, { recursive: true })
  await service[Symbol.asyncDispose]()
})

/** Without HOME and PATH, which the program does not need. */
const environment = () => ({ SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token, NODE_NO_WARNINGS: '1' })

function start(words: readonly string[], stdio: { stdin?: number | 'pipe'; stdout?: number | 'pipe' } = {}) {
  const { stdin = 'pipe', stdout = 'pipe' } = stdio
  const child = spawn(process.execPath, [entry, ...words], { env: environment(), stdio: [stdin, stdout, 'pipe'] })
  const said = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk) => (said.stdout += chunk))
  child.stderr?.on('data', (chunk) => (said.stderr += chunk))
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...said }))
  return { child, ended }
}
const add = (server: string) => ['regcred', 'add', `https://${server}`, '-u', 'me', '--password-stdin']

describe('process', { concurrency: 2 }, () => {
  const inputs = [
    ['pipe.io', 'secret\n', 'secret'],
    ['crlf.io', 'secret\r\n', 'secret'],
    ['none.io', 'secret', 'secret'],
    ['two.io', 'secret\n\n', 'secret\n'],
    ['empty.io', '', undefined],
    ['newline.io', '\n', undefined],
  ] as const
  for (const [server, input, password] of inputs) {
    it(`the process reads ${JSON.stringify(input)} from a pipe`, async () => {
      const { child, ended } = start(add(server))
      child.stdin?.end(input)
      const { code, stderr } = await ended
      assert.equal(code, password === undefined ? 2 : 0, stderr)
      assert.equal(service.passwords.get(`https://${server}`), password)
    })
  }

  it('the process reads a redirected file', async () => {
    const file = path.join(folder, 'password')
    fs.writeFileSync(file, 'from a file\n')
    const stdin = fs.openSync(file, 'r')
    const { code } = await start(add('file.io'), { stdin }).ended
    fs.closeSync(stdin)
    assert.equal(code, 0)
    assert.equal(service.passwords.get('https://file.io'), 'from a file')
  })

  it('the process ends quietly when its reader has closed the pipe', async () => {
    for (let index = 0; index < 2_000; index++) {
      const server = `https://r${index}.example.com`
      service.stored.set(`svc-many ${server}`, recordOf({ server, username: 'u'.repeat(100) }))
    }
    const { child, ended } = start(['regcred', 'list', '-n', 'svc-many', '-o', 'json'])
    child.stdout?.destroy()
    const { code, stderr } = await ended
    assert.deepEqual([code, stderr], [0, ''])
  })

  it('the process writes a long answer whole to a slow reader', async () => {
    for (let index = 0; index < 2_000; index++) {
      const server = `https://s${index}.example.com`
      service.stored.set(`svc-slow ${server}`, recordOf({ server, username: 'u' }))
    }
    const { child, ended } = start(['regcred', 'list', '-n', 'svc-slow', '-o', 'json'])
    child.stdout?.pause()
    await once(child.stdout ?? child, 'readable')
    child.stdout?.resume()
    const { code, stdout } = await ended
    assert.equal(code, 0)
    assert.equal(JSON.parse(stdout).length, 2_000)
  })

  it('the process reports an error when its output cannot be written', async () => {
    const stdout = fs.openSync('/dev/full', 'w')
    const { code, stderr } = await start(['--help'], { stdout }).ended
    fs.closeSync(stdout)
    assert.equal(code, 1)
    assert.match(stderr, /^svc3: Cannot write to standard output \(ENOSPC\)\n/)
  })

  it('the process ends with 130 at Ctrl-C while it waits for the service', async () => {
    const asked = Promise.withResolvers<void>()
    const silent = await startFakeService()
    silent.override = () => asked.resolve()
    const words = ['regcred', 'list']
    const env = { ...environment(), SVC3_API_URL: silent.apiUrl }
    const child = spawn(process.execPath, [entry, ...words], { env, stdio: 'ignore' })
    await asked.promise
    child.kill('SIGINT')
    const [code] = await once(child, 'exit')
    await silent[Symbol.asyncDispose]()
    assert.equal(code, 130)
  })
})

describe('bin/svc3', () => {
  it('finds its Node through links, passes its name on, and says when nothing is built', async () => {
    const tree = path.join(folder, 'a tree')
    fs.mkdirSync(path.join(tree, 'bin'), { recursive: true })
    fs.copyFileSync(path.join(root, 'bin/svc3'), path.join(tree, 'bin/svc3'))
    fs.symlinkSync('svc3', path.join(tree, 'bin/orka3'))
    fs.symlinkSync(path.join(tree, 'bin/orka3'), path.join(folder, 'linked'))
    const shell = async (file: string, cwd = folder) => {
      const child = spawn(file, ['a b', ''], { cwd, env: { PATH: process.env.PATH } })
      let text = ''
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk))
      const [code] = await once(child, 'close')
      return { code: code as number, text }
    }
    const unbuilt = await shell(path.join(folder, 'linked'))
    assert.equal(unbuilt.code, 1)
    assert.ok(unbuilt.text.includes(`Run npm run build in ${fs.realpathSync(tree)}`), unbuilt.text)

    fs.mkdirSync(path.join(tree, '.node/bin'), { recursive: true })
    fs.mkdirSync(path.join(tree, 'dist'))
    fs.symlinkSync(process.execPath, path.join(tree, '.node/bin/node'))
    const script = 'console.log(process.env.SVC3_CALLED_AS, JSON.stringify(process.argv.slice(2)))'
    fs.writeFileSync(path.join(tree, 'dist/svc3.cjs'), script)
    assert.equal((await shell(path.join(tree, 'bin/orka3'))).text, `${tree}/bin/orka3 ["a b",""]\n`)
    assert.equal((await shell('./svc3', path.join(tree, 'bin'))).text, './svc3 ["a b",""]\n')
    assert.equal((await shell(path.join(folder, 'linked'))).text, `${folder}/linked ["a b",""]\n`)
  })
})

describe('environment', { concurrency: 2 }, () => {
  /** Starts the program with a shell, because Node cannot pass closed streams or invalid UTF-8. */
  function shell(script: string, env: Record<string, string> = {}) {
    const child = spawn('sh', ['-c', script, process.execPath, entry], {
      env: { ...environment(), PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const said = { stdout: '', stderr: '' }
    child.stdout.on('data', (chunk) => (said.stdout += chunk))
    child.stderr.on('data', (chunk) => (said.stderr += chunk))
    return once(child, 'close').then(([code]) => ({ code: code as number | null, ...said }))
  }

  it('the process exits normally when a stream is closed from the start', async () => {
    const closed = await shell('exec "$0" "$1" --help >&-')
    assert.deepEqual([closed.code, closed.stderr], [0, ''])
    const mute = await shell('exec "$0" "$1" nonsense 2>&-')
    assert.deepEqual([mute.code, mute.stdout], [2, ''])
  })

  it('the process reads and completes with a read-only HOME, and names the error when it has to write', async () => {
    // Not even root can write there.
    const env = { HOME: '/sys', XDG_CONFIG_HOME: '', XDG_CACHE_HOME: '' }
    const read = await shell('"$0" "$1" regcred list -o json && "$0" "$1" __complete -- regcred remove ""', env)
    assert.deepEqual([read.code, read.stderr], [0, ''])
    assert.match(read.stdout, /^\[.*\]\n.*:\n$/s)
    const written = await shell('exec "$0" "$1" config set --api-url https://svc3.example.com', env)
    assert.equal(written.code, 1)
    assert.match(
      written.stderr,
      /^svc3: Cannot write \/sys\/\.config\/svc3\/config\.json \(\w+\)\nsvc3: Check the folder/,
    )
  })

  it('the process needs no UTF-8: neither in the locale nor in its words', async () => {
    const env = { LC_ALL: 'de_DE.ISO-8859-1', LANG: 'C' }
    const help = await shell('exec "$0" "$1" vm delete --help', env)
    assert.equal(help.code, 0)
    assert.match(help.stdout, /Usage: svc3 vm delete \[NAME…\] \[OPTIONS\]/)
    const odd = await shell('exec "$0" "$1" regcred list "$(printf \'https://x\\377\\033[2J\')"', env)
    assert.equal(odd.code, 2)
    assert.ok(!odd.stderr.includes('\x1b') && odd.stderr.split('\n').length === 3, odd.stderr)
  })
})
