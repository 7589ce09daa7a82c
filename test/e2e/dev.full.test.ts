// `svc3 dev` as a person runs it: it resumes after a stop or a kill, refuses to run twice, and is what npm start runs.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { makeFolder, root, startDev, svc3 } from '../support/processes/dev-server.ts'
import { credentialsPath } from '../support/rigs/service.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { eventually } from '../support/tools/eventually.ts'

/** A start takes a second of processor time; in test/long there are more. */
const rounds = isAllTested ? 20 : 3

let data: string
beforeEach(async () => {
  data = await makeFolder()
})
afterEach(() => fs.rm(data, { recursive: true, force: true }))

const credential = (index: number) => ({
  server: `https://r${index}.example`,
  username: 'bot',
  password: `secret-${index}`,
})

describe('svc3 dev', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`svc3 dev ends cleanly on ${signal}, also with a watch open, and goes on where it ended`, async () => {
      const first = await startDev(data)
      await first.call('POST', `${credentialsPath}/add`, credential(1))
      const watch = await fetch(`${first.apiUrl}${credentialsPath}?watch=true`, {
        headers: { authorization: `Bearer ${first.token}` },
      })
      // The server ends the watch: one that had to be cut off would be no whole answer.
      const [ended] = await Promise.all([first.kill(signal), watch.text()])
      assert.deepEqual(ended, { code: 0, signal: null })
      await assert.rejects(fs.stat(path.join(data, 'connection.json')))
      await using second = await startDev(data)
      const { body } = await second.call('GET', credentialsPath)
      assert.equal((body.items as unknown[]).length, 1)
    })
  }

  it('svc3 dev refuses to run twice on the same data, saying who has it, and on a port that is taken', async () => {
    await using first = await startDev(data)
    const twice = await svc3(['dev', '--listen', '127.0.0.1:0', '--data', data])
    assert.deepEqual([twice.code, twice.stdout], [1, ''])
    assert.match(
      twice.stderr,
      new RegExp(
        `^svc3: Already running at ${first.apiUrl} \\(process ${first.pid}, data in .*\\)\n.* kill ${first.pid};`,
      ),
    )
    const other = await makeFolder()
    const { code, stderr } = await svc3(['dev', '--listen', new URL(first.apiUrl).host, '--data', other])
    assert.equal(code, 1)
    assert.match(stderr, /Another program already listens on .*\n.*--listen/)
    await fs.rm(other, { recursive: true })
    assert.equal((await first.call('GET', credentialsPath)).status, 200)
  })

  it('svc3 dev refuses data of a newer program, a lost master key and a wrong configuration, each by name', async () => {
    await (await startDev(data)).kill('SIGTERM')
    const start = () => svc3(['dev', '--listen', '127.0.0.1:0', '--data', data])
    await fs.writeFile(path.join(data, 'config.json'), '{"limits":{"bodyBytes":"many"}}')
    assert.match(
      (await start()).stderr,
      /Invalid .*config\.json: limits\.bodyBytes must be integer.*docs\/reference\/config\.md/s,
    )
    await fs.rm(path.join(data, 'config.json'))
    await fs.rename(path.join(data, 'master.key'), path.join(data, 'away'))
    assert.match((await start()).stderr, /Master key .* not found.*restore it from your backup/)
    await fs.rename(path.join(data, 'away'), path.join(data, 'master.key'))
    const database = new DatabaseSync(path.join(data, 'svc3.db'))
    database.exec('PRAGMA user_version = 99')
    database.close()
    const newer = await start()
    assert.equal(newer.code, 1)
    assert.match(newer.stderr, /99/)
    assert.match(newer.stderr, /newer/i)
  })

  it('svc3 dev loses no acknowledged credential to kill -9 in the middle of a stream of adds', {
    timeout: 400_000,
  }, async () => {
    const acknowledged = new Set<string>()
    let next = 0
    for (let round = 0; round < rounds; round++) {
      await using server = await startDev(data)
      const stored = (await server.call('GET', credentialsPath)).body.items as { server: string }[]
      const servers = new Set(stored.map((item) => item.server))
      for (const each of acknowledged) assert.ok(servers.has(each), `${each} was acknowledged and is gone`)
      const writers = Array.from({ length: 8 }, async () => {
        for (;;) {
          const body = credential(next++)
          const answer = await server.call('POST', `${credentialsPath}/add`, body).catch(() => undefined)
          if (!answer) return
          assert.equal(answer.status, 201)
          acknowledged.add(body.server)
        }
      })
      const enough = acknowledged.size + 50 + Math.floor(Math.random() * 100)
      while (acknowledged.size < enough) await new Promise((resolve) => setTimeout(resolve, 1))
      await server.kill('SIGKILL')
      await Promise.all(writers)
    }
    assert.ok(acknowledged.size >= 50 * rounds)
  })

  it('svc3 dev ends with the thread of its nodes, and the next start completes what they were at', async () => {
    const args = ['--driver', 'simulated', '--nodes', 'amd64=1']
    const namespace = '/api/v1/namespaces/svc-default'
    const vms = `${namespace}/vms`
    await using broken = await startDev(data, { args, env: { SVC3_TEST: '1', SVC3_FAILPOINT: 'captures.packed:exit' } })
    const made = await broken.call('POST', vms, { name: 'kept', image: 'tiny-amd64', cpu: 1, memory: 0.5 })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    assert.equal((await broken.call('POST', `${vms}/kept/save`, { imageName: 'saved' })).status, 202)
    assert.deepEqual(await broken.ended, { code: 1, signal: null })
    await using next = await startDev(data, { args })
    await eventually(async () => {
      const { body } = await next.call('GET', `${namespace}/images/saved`)
      assert.equal(body.state, 'Ready', JSON.stringify(body))
    })
    assert.equal((await next.call('GET', `${vms}/kept`)).body.status, 'Running')
  })

  it('svc3 dev is what npm start runs, with its options, and ends with it', { timeout: 400_000 }, async () => {
    const server = await startDev(data, {
      command: ['npm', 'start', '--'],
      args: ['--driver', 'simulated', '--nodes', 'arm64=1,amd64=1'],
    })
    assert.equal((await server.call('GET', '/readyz')).status, 200)
    await server.kill('SIGTERM')
    await hasEnded(server.pid)
    await assert.rejects(fs.stat(path.join(data, 'connection.json')), { code: 'ENOENT' }, server.output())
  })

  it('svc3 dev killed as npm start with -9 in the middle of adds, goes on at once and has every acknowledged one', {
    timeout: 400_000,
  }, async () => {
    const built = (await fs.stat(path.join(root, 'dist'))).ino
    const server = await startDev(data, { command: ['npm', 'start', '--'] })
    // The one before has built it, if it was not: other programs of this checkout run from there.
    assert.equal((await fs.stat(path.join(root, 'dist'))).ino, built)
    const acknowledged: string[] = []
    let next = 0
    const writers = Array.from({ length: 8 }, async () => {
      for (;;) {
        const body = credential(next++)
        const answer = await server.call('POST', `${credentialsPath}/add`, body).catch(() => undefined)
        if (!answer) return
        assert.equal(answer.status, 201)
        acknowledged.push(body.server)
      }
    })
    while (acknowledged.length < 100) await new Promise((resolve) => setTimeout(resolve, 1))
    await server.kill('SIGKILL')
    await using again = await startDev(data)
    await Promise.all(writers)
    assert.notEqual(again.pid, server.pid)
    const stored = new Set(
      ((await again.call('GET', credentialsPath)).body.items as { server: string }[]).map((item) => item.server),
    )
    for (const each of acknowledged) assert.ok(stored.has(each), `${each} was acknowledged and is gone`)
    await hasEnded(server.pid)
  })
})

/** It is a child of npm, which may exit first, so its end is polled. Until it ends it writes into its folder. */
const hasEnded = (pid: number): Promise<unknown> =>
  eventually(() => assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' }))
