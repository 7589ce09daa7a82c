// Secrets end to end: a planted password is nowhere but sealed; keys rotate under a running server and without one;
// what was tampered with is refused.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { rowSum } from '../../src/store/sqlite/whole.ts'
import { type DevServer, filesWith, makeFolder, startDev, svc3 } from '../support/processes/dev-server.ts'
import { credentialsPath } from '../support/rigs/service.ts'
import { eventually } from '../support/tools/eventually.ts'

const canary = 'canary-b81c6f0d-never-in-clear'
let data: string
beforeEach(async () => {
  data = await makeFolder()
})
afterEach(() => fs.rm(data, { recursive: true, force: true }))

const env = () => ({ SVC3_DATA: data })
const add = (server: DevServer, index: number) =>
  server.call('POST', `${credentialsPath}/add`, {
    server: `https://r${index}.example`,
    username: 'bot',
    password: `${canary}-${index}`,
  })

const keyFile = () => fs.readFile(path.join(data, 'master.key'), 'utf8')
const sealed = (): string[] => {
  const database = new DatabaseSync(path.join(data, 'svc3.db'))
  const rows = database
    .prepare("select value from entries join log using (rev) where entries.key like '/registry-credentials/%'")
    .all()
  database.close()
  return rows.map(({ value }) => String(value))
}

describe('a planted password', () => {
  it('a planted password is in no file of the data folder, no log, no process and no answer', async () => {
    await using server = await startDev(data)
    const seen: string[] = []
    const steps: readonly (readonly [readonly string[], string?])[] = [
      [['regcred', 'add', 'https://ghcr.io', '-u', 'me', '--password-stdin'], `${canary}\n`],
      [['regcred', 'add', 'https://ghcr.io', '-u', 'me', '--password-stdin'], `${canary}\n`],
      [['regcred', 'add', 'https://ghcr.io', '-u', 'me', '--password-stdin', '--replace', '-o', 'json'], canary],
      [['regcred', 'add', 'http://ghcr.io', '-u', 'me', '--password-stdin'], canary],
      [['regcred', 'list', '-o', 'wide']],
      [['regcred', 'list', '-o', 'json']],
      [['regcred', 'list', '-o', 'yaml']],
    ]
    for (const [args, input = ''] of steps) {
      const running = svc3(args, { env: env(), input })
      const processes = execFileSync('ps', ['axeww', '-o', 'args'], { encoding: 'utf8' })
      assert.ok(!processes.includes(canary), 'the password is in the arguments or environment of a process')
      const { stdout, stderr } = await running
      seen.push(stdout, stderr)
    }
    seen.push(server.output())
    for (const text of seen) assert.ok(!text.includes(canary), text)
    assert.equal((await server.call('GET', credentialsPath)).status, 200)
    assert.deepEqual(await filesWith(data, canary), [])
    await server.kill('SIGTERM')
    assert.deepEqual(await filesWith(data, canary), [])
  })
})

describe('svc3 server rotate-master-key', () => {
  const rotate = () => svc3(['server', 'rotate-master-key', '--data', data])

  it('svc3 server rotate-key seals everything anew under a running server, which goes on, and drops the old key', async () => {
    await using server = await startDev(data)
    for (let index = 0; index < 20; index++) await add(server, index)
    const before = await keyFile()
    const { code, stdout, stderr } = await rotate()
    assert.equal(code, 0, stderr)
    // Twenty credentials, the key that signs tokens and the one that others follow from, the keys of the built-in
    // identity provider, the key of the authority for nodes, the password of the administrator.
    assert.match(stdout, /Master key rotated: 26 records are now encrypted with key [0-9a-f]{12}\./)
    const after = await keyFile()
    assert.equal(after.trim().split('\n').length, 1)
    assert.notEqual(after, before)
    assert.equal(((await server.call('GET', credentialsPath)).body.items as unknown[]).length, 20)
    assert.equal((await add(server, 99)).status, 201)
    await server.kill('SIGTERM')
    await using again = await startDev(data)
    assert.equal(((await again.call('GET', credentialsPath)).body.items as unknown[]).length, 21)
  })

  it('svc3 server rotate-key loses nothing that is added at the same time', { timeout: 400_000 }, async () => {
    await using server = await startDev(data)
    let next = 0
    let isOver = false
    const adders = Array.from({ length: 16 }, async () => {
      while (!isOver) assert.equal((await add(server, next++)).status, 201)
    })
    for (let round = 0; round < 3; round++) assert.equal((await rotate()).code, 0)
    isOver = true
    await Promise.all(adders)
    const { status, body } = await server.call('GET', credentialsPath)
    assert.equal(status, 200)
    assert.equal((body.items as unknown[]).length, next)
    await server.kill('SIGTERM')
    await using again = await startDev(data)
    assert.equal(((await again.call('GET', credentialsPath)).body.items as unknown[]).length, next)
  })

  it('svc3 server rotate-key does not take the word of a server that is gone', async () => {
    const server = await startDev(data)
    await server.kill('SIGKILL')
    const bystander = spawn('sleep', ['600'])
    const note = { apiUrl: server.apiUrl, adminToken: 'x', pid: bystander.pid }
    await using again = await startDev(data)
    await fs.writeFile(path.join(data, 'connection.json'), JSON.stringify({ ...note, apiUrl: 'http://127.0.0.1:9' }))
    const { code, stderr } = await rotate()
    assert.equal(code, 1, stderr)
    assert.equal(bystander.exitCode, null)
    assert.equal(bystander.signalCode, null)
    bystander.kill()
    assert.equal((await again.call('GET', credentialsPath)).status, 200)
  })

  it('svc3 server rotate-key does it by itself when no server runs', async () => {
    const server = await startDev(data)
    await add(server, 1)
    await server.kill('SIGTERM')
    const before = sealed()
    const { code, stdout } = await rotate()
    assert.equal(code, 0)
    assert.match(stdout, /7 records/)
    assert.notDeepEqual(sealed(), before)
    await using again = await startDev(data)
    assert.equal((await again.call('GET', credentialsPath)).status, 200)
    assert.equal((await again.call('GET', '/api/v1/namespaces')).status, 200)
  })

  it('svc3 server rotate-key finishes at the next start what a crash cut off', async () => {
    const server = await startDev(data)
    await add(server, 1)
    await server.kill('SIGKILL')
    // As if the rotation died after it wrote the ring: a new active key stands before the old one.
    const old = await keyFile()
    await fs.writeFile(path.join(data, 'master.key'), `${Buffer.alloc(32, 7).toString('base64')}\n${old}`, {
      mode: 0o600,
    })
    await using again = await startDev(data)
    assert.equal((await again.call('GET', credentialsPath)).status, 200)
    assert.equal((await keyFile()).trim(), Buffer.alloc(32, 7).toString('base64'))
  })

  it('svc3 server rotate-key refuses where there is no data, or the keys are not its own to change', async () => {
    assert.match((await rotate()).stderr, /No master key in/)
    const { stderr, code } = await svc3(['server', 'rotate-master-key', '--data', data], {
      env: { SVC3_MASTER_KEY: 'x' },
    })
    assert.equal(code, 1)
    assert.match(stderr, /Put a new key before the old one/)
  })
})

describe('data that was tampered with', () => {
  it('data that was tampered with is refused loudly: in the log at start, in the list, in a rotation; and can be removed', async () => {
    const server = await startDev(data)
    await add(server, 1)
    await add(server, 2)
    await server.kill('SIGTERM')
    const database = new DatabaseSync(path.join(data, 'svc3.db'))
    database.exec(`update log set value = replace(value, '"bot"', '"eve"') where key like '%r1.example'`)
    // A deliberate change, with the checksum corrected; without that it would be a damaged database.
    database.function('row_sum', rowSum as (...values: unknown[]) => number)
    database.exec('update log set sum = row_sum(rev, key, previous_rev, value)')
    database.close()
    await using again = await startDev(data)
    // It was said before it was ready, on another pipe.
    await eventually(() =>
      assert.match(again.output(), /"level":"error".*r1\.example.*"message":"a sealed record cannot be decrypted"/),
    )
    const list = await again.call('GET', credentialsPath)
    assert.equal(list.status, 500)
    assert.match(String(list.body.message), /r1\.example cannot be decrypted/)
    const rotated = await svc3(['server', 'rotate-master-key', '--data', data])
    assert.equal(rotated.code, 1)
    assert.match(rotated.stderr, /r1\.example cannot be decrypted[\s\S]*1 records cannot be decrypted/)
    assert.equal(
      (await again.call('DELETE', `${credentialsPath}/remove`, { server: 'https://r1.example' })).status,
      200,
    )
    assert.equal(((await again.call('GET', credentialsPath)).body.items as unknown[]).length, 1)
    assert.equal((await svc3(['server', 'rotate-master-key', '--data', data])).code, 0)
    assert.equal((await keyFile()).trim().split('\n').length, 1)
  })
})
