// `svc3 server users` as an operator runs it: on a real terminal, beside a running server and without one.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { makeFolder, program, startDev, svc3 } from '../support/processes/dev-server.ts'

let data: string
beforeEach(async () => {
  data = await makeFolder()
})
afterEach(() => fs.rm(data, { recursive: true, force: true }))
const users = (...args: string[]) => svc3(['server', 'users', ...args, '--data', data], { input: 'a good password\n' })

/** Runs a command line on a terminal and types each line when its question has come. */
async function onTerminal(line: string, answers: readonly (readonly [string, string])[]) {
  const child = spawn('script', ['-qec', line, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] })
  let screen = ''
  const rest = [...answers]
  child.stdout.on('data', (chunk) => {
    screen += chunk
    const next = rest[0]
    if (!next || !screen.includes(next[0])) return
    rest.shift()
    child.stdin.write(`${next[1]}\r`)
  })
  const [code] = await once(child, 'close')
  return { code: Number(code), screen }
}

describe('svc3 server users', () => {
  it('svc3 server users asks for a password twice on a terminal, unseen', async () => {
    await (await startDev(data)).kill('SIGTERM')
    const line = `${program} server users add ada@example.com --data ${data}`
    const differ = await onTerminal(line, [
      ['New password: ', 'one password'],
      ['Repeat the password: ', 'another password'],
    ])
    assert.equal(differ.code, 2)
    assert.match(differ.screen, /The passwords do not match/)
    const added = await onTerminal(line, [
      ['New password: ', 'one password'],
      ['Repeat the password: ', 'one password'],
    ])
    assert.equal(added.code, 0, added.screen)
    assert.match(added.screen, /User ada@example.com added\./)
    assert.ok(!added.screen.includes('one password'))
  })

  it('svc3 server users lists, removes and refuses, each with a word of advice', async () => {
    const nowhere = await users('list')
    assert.equal(nowhere.code, 1)
    assert.match(nowhere.stderr, /is not the data folder of a server\. .*--data/)
    await using _server = await startDev(data)
    assert.match((await users('list')).stdout, /^EMAIL\tROLE\tCREATED\nadmin@localhost\tadministrator\t20\S+Z\n$/)
    assert.equal((await users('add', 'Bob@Example.com', '--password-stdin')).stdout, 'User bob@example.com added.\n')
    const twice = await users('add', 'bob@example.com', '--password-stdin')
    assert.deepEqual([twice.code, /already.*\n.*users reset/.test(twice.stderr)], [1, true])
    assert.match((await users('list')).stdout, /^bob@example\.com\tuser\t/m)
    assert.equal((await users('remove', 'bob@example.com')).code, 0)
    const again = await users('remove', 'bob@example.com')
    assert.deepEqual([again.code, /not found\n.*users list/.test(again.stderr)], [1, true])
    // The request went through this file.
    assert.doesNotMatch(await fs.readFile(path.join(data, 'rotation.json'), 'utf8'), /scrypt|salt|hash/)
  })

  it('svc3 server users reset leaves this machine logged in', async () => {
    await using _server = await startDev(data)
    const list = () => svc3(['vm', 'list', '-o', 'json'], { env: { SVC3_DATA: data } })
    assert.equal((await list()).code, 0)
    const token = async (): Promise<string> =>
      JSON.parse(await fs.readFile(path.join(data, 'connection.json'), 'utf8')).adminToken
    const before = await token()
    assert.equal((await users('reset', 'admin@localhost', '--password-stdin')).code, 0)
    assert.notEqual(await token(), before)
    const after = await list()
    assert.deepEqual([after.code, after.stdout], [0, '[]\n'], after.stderr)
  })

  it('svc3 server token logs in beside a running server, which keeps no copy of the token', async () => {
    await using server = await startDev(data)
    const { code, stdout } = await svc3(['server', 'token', '--data', data])
    assert.equal(code, 0)
    const answer = await server.call('GET', '/api/v1/namespaces/svc-default/serviceaccounts', undefined, {
      authorization: `Bearer ${stdout.trim()}`,
    })
    assert.equal(answer.status, 200)
    assert.doesNotMatch(await fs.readFile(path.join(data, 'rotation.json'), 'utf8'), /eyJ/)
    const events = await server.call('GET', '/api/v1/namespaces/svc-default/events')
    const reasons = (events.body.items as { reason: string }[]).map(({ reason }) => reason)
    assert.ok(reasons.includes('CreateAdministratorToken'))
    assert.equal((await svc3(['server', 'token', '--user', 'bo@example.com', '--data', data])).code, 1)
  })

  it('metrics are served without a token on the address in config.json, and a taken one stops the start', async () => {
    const taken = net.createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as net.AddressInfo
    await fs.writeFile(path.join(data, 'config.json'), JSON.stringify({ metrics: { host: '127.0.0.1', port } }))
    const refused = await svc3(['dev', '--listen', '127.0.0.1:0', '--data', data])
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /Address of metrics in config\.json: .*EADDRINUSE/)
    taken.close()
    await once(taken, 'close')
    await using _server = await startDev(data)
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    assert.match(metrics, /^svc3_build_info\{/m)
  })

  it('users that an old version has left in a file stop a start and an edit, by name', async () => {
    await fs.writeFile(path.join(data, 'users.json.importing'), '{"users":[]}')
    const { code, stderr } = await svc3(['dev', '--listen', '127.0.0.1:0', '--data', data])
    assert.equal(code, 1)
    assert.match(stderr, /users\.json has the users of .*start svc3 3\.0\.0-alpha\.31/)
    assert.match((await users('list')).stderr, /users\.json has the users of/)
  })
})
