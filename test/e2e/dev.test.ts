// `svc3 dev` as a person runs it, on one short path: it starts, says so, and loses nothing to a kill -9; and bin/svc3
// itself.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { makeFolder, program, root, startDev } from '../support/processes/dev-server.ts'
import { credentialsPath } from '../support/rigs/service.ts'

let data: string
beforeEach(async () => {
  data = await makeFolder()
})
afterEach(() => fs.rm(data, { recursive: true, force: true }))

describe('svc3 dev', () => {
  it('svc3 dev says where it serves and how to go on, leaves a private connection file, and needs no reader', async () => {
    await using server = await startDev(data)
    assert.match(
      server.output(),
      /^svc3 ready at http:\/\/127\.0\.0\.1:\d+\n\nOpen the console .*:\n {2}\S+\n\nTry in another terminal:\n( {2}.+\n){4}/m,
    )
    const link = /http:\S+\/console\/#ticket=(\S+)/.exec(server.output())
    const login = () =>
      fetch(`${server.apiUrl}/console/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-svc3-console': '1' },
        body: JSON.stringify({ ticket: link?.[1] }),
      })
    const entered = (await (await login()).json()) as { user: object }
    assert.deepEqual(entered.user, { kind: 'user', name: 'admin@localhost', admin: true })
    assert.equal((await login()).status, 401)
    const file = path.join(data, 'connection.json')
    assert.equal((await fs.stat(file)).mode & 0o777, 0o600)
    assert.deepEqual(Object.keys(JSON.parse(await fs.readFile(file, 'utf8'))), ['apiUrl', 'adminToken', 'pid'])
    assert.equal(server.pid, server.process.pid)
    assert.equal((await fs.stat(data)).mode & 0o077, 0)
    for (const name of await fs.readdir(data))
      assert.equal((await fs.stat(path.join(data, name))).mode & 0o077, 0, name)
    // It continues when its output is no longer read.
    server.process.stdout?.destroy()
    server.process.stderr?.destroy()
    for (let index = 0; index < 5; index++) assert.equal((await server.call('GET', '/nowhere')).status, 404)
    assert.equal((await server.call('GET', credentialsPath)).status, 200)
    await server.kill('SIGTERM')
  })

  it('svc3 dev has every credential that it acknowledged before a kill -9, at its next start', async () => {
    const acknowledged: string[] = []
    {
      await using server = await startDev(data)
      const writers = Array.from({ length: 8 }, async (_, writer) => {
        for (let index = 0; ; index++) {
          const registry = `https://r${writer}-${index}.example`
          const body = { server: registry, username: 'bot', password: 'secret' }
          const answer = await server.call('POST', `${credentialsPath}/add`, body).catch(() => undefined)
          if (!answer) return
          assert.equal(answer.status, 201)
          acknowledged.push(registry)
        }
      })
      while (acknowledged.length < 100) await new Promise((resolve) => setTimeout(resolve, 1))
      await server.kill('SIGKILL')
      await Promise.all(writers)
    }
    await using again = await startDev(data)
    const stored = (await again.call('GET', credentialsPath)).body.items as { server: string }[]
    const servers = new Set(stored.map((item) => item.server))
    assert.deepEqual(
      acknowledged.filter((each) => !servers.has(each)),
      [],
    )
  })
})

describe('bin/svc3', () => {
  it('bin/svc3 works through a link from any folder, under the name it is called by', async () => {
    const link = path.join(data, 'orka3')
    await fs.symlink(program, link)
    const child = spawn(link, ['--help'], { cwd: '/' })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 0)
    assert.match(output, /Usage: orka3 /)
  })

  it('bin/svc3 says what to do in a checkout that is not built', async () => {
    await fs.mkdir(path.join(data, 'bin'))
    await fs.copyFile(path.join(root, 'bin/svc3'), path.join(data, 'bin/svc3'))
    const child = spawn(path.join(data, 'bin/svc3'), ['--help'])
    let output = ''
    child.stderr.on('data', (chunk) => {
      output += chunk
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 1)
    assert.match(output, /not built yet[\s\S]*npm run build/)
  })
})
