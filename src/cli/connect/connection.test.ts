// Which server commands use: environment, config file, local server, and the error if there is none.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../../test/support/stand-ins/api.ts'

let folder: string
let service: FakeService
before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-connection-'))
  service = await startFakeService()
})
after(async () => {
  fs.rmSync(folder, { recursive: true })
  await service[Symbol.asyncDispose]()
})

/** Writes a file into a new folder and returns that folder. */
function place(file: string, content: unknown): string {
  const home = fs.mkdtempSync(path.join(folder, 'x-'))
  const target = path.join(home, file)
  fs.mkdirSync(path.dirname(target), { recursive: true })
  fs.writeFileSync(target, typeof content === 'string' ? content : JSON.stringify(content))
  return home
}
const list = ['regcred', 'list', '-o', 'json']
const deadPid = (): number => spawnSync(process.execPath, ['-e', '0']).pid
const lastPath = (): string | undefined => service.requests.at(-1)?.path

describe('connection', () => {
  it('the command line says how to start a server when none is known, also without HOME', async () => {
    const { exitCode, stderr } = await run(list, { checkout: '/nowhere/svc3' })
    assert.equal(exitCode, 1)
    assert.match(
      stderr,
      /^svc3: No server is running from this checkout.*\nsvc3: Run npm start in \/nowhere\/svc3, or set SVC3_API_URL/,
    )
  })

  it('the command line finds the local server of the checkout, and prefers the one of SVC3_DATA', async () => {
    const note = { apiUrl: service.apiUrl, adminToken: service.token, pid: process.pid }
    assert.equal((await run(list, { checkout: place('.svc3/connection.json', note) })).stdout, '[]\n')
    const checkout = place('.svc3/connection.json', { ...note, adminToken: 'another' })
    const env = { SVC3_DATA: place('connection.json', note) }
    assert.equal((await run(list, { checkout, env })).exitCode, 0)
    assert.equal((await run(list, { checkout })).exitCode, 3)
  })

  it('the current context, with its namespace, is preferred to the local server', async () => {
    const contexts = { work: { apiUrl: `${service.apiUrl}/`, token: service.token, namespace: 'svc-work' } }
    const config = place('svc3/config.json', { currentContext: 'work', contexts })
    assert.equal((await run(list, { env: { XDG_CONFIG_HOME: config } })).exitCode, 0)
    assert.match(lastPath() ?? '', /namespaces\/svc-work\//)
    const env = { XDG_CONFIG_HOME: config, SVC3_DEFAULT_NAMESPACE: 'svc-env' }
    await run(list, { env })
    assert.match(lastPath() ?? '', /svc-env/)
    await run(['-n', 'svc-flag', ...list], { env })
    assert.match(lastPath() ?? '', /svc-flag/)
    const home = place('.config/svc3/config.json', { currentContext: 'work', contexts })
    assert.equal((await run(list, { env: { HOME: home } })).exitCode, 0)
  })

  it('a stored token is sent only to the server it belongs to', async () => {
    const checkout = place('.svc3/connection.json', { apiUrl: 'http://127.0.0.1:1', adminToken: service.token })
    const { exitCode } = await run(list, { checkout, env: { SVC3_API_URL: service.apiUrl } })
    assert.equal(exitCode, 3)
    assert.equal(service.requests.at(-1)?.headers.authorization, undefined)
    const same = place('.svc3/connection.json', { apiUrl: service.apiUrl, adminToken: service.token })
    assert.equal((await run(list, { checkout: same, env: { SVC3_API_URL: service.apiUrl } })).exitCode, 0)
  })

  it('a connection file of a server that has ended is explained', async () => {
    const pid = deadPid()
    const gone = await startFakeService()
    await gone[Symbol.asyncDispose]()
    const checkout = place('.svc3/connection.json', { apiUrl: gone.apiUrl, adminToken: 'x', pid })
    const stale = await run(list, { checkout })
    assert.equal(stale.exitCode, 1)
    assert.match(
      stale.stderr,
      new RegExp(`No server answers at ${gone.apiUrl}: process ${pid}, .* has ended\n.*npm start`),
    )
    const typed = await run(list, { env: { SVC3_API_URL: gone.apiUrl } })
    assert.match(
      typed.stderr,
      /^svc3: No server answers at .*\nsvc3: Check the address \(from SVC3_API_URL\), or run npm start/,
    )
  })

  const broken = [
    ['svc3/config.json', '{"token":"planted', /is not a JSON object/],
    ['svc3/config.json', [], /is not a JSON object/],
    ['svc3/config.json', { currentContext: 'a', contexts: {} }, /Context a in .* has no apiUrl/],
    [
      'svc3/config.json',
      { currentContext: 'a', contexts: { a: { apiUrl: 'localhost:8080' } } },
      /Invalid address in context a/,
    ],
  ] as const
  for (const [file, content, text] of broken) {
    it(`the command line refuses ${JSON.stringify(content)} in the config file`, async () => {
      const { exitCode, stderr } = await run(list, { env: { XDG_CONFIG_HOME: place(file, content) } })
      assert.ok(exitCode === 1 || exitCode === 2)
      assert.match(stderr, text)
      assert.ok(!stderr.includes('planted'))
    })
  }

  it('the command line refuses invalid addresses and tokens without repeating them', async () => {
    for (const SVC3_API_URL of ['127.0.0.1:8080', 'ftp://x', 'http://me:planted@x', 'http://x?planted', 'planted']) {
      const { exitCode, stderr } = await run(list, { env: { SVC3_API_URL } })
      assert.equal(exitCode, 2)
      assert.ok(!stderr.includes('planted'))
    }
    const env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: 'planted\nx' }
    const { exitCode, stderr } = await run(list, { env })
    assert.equal(exitCode, 2)
    assert.ok(!stderr.includes('planted'))
    assert.equal((await run(list, { env: { ...env, SVC3_TOKEN: `${service.token}\n` } })).exitCode, 0)
  })
})
