// Backup, restore and the move from SQLite to etcd, as an operator does them: also while servers run, also cut off, and
// refused where they would mix two services or use what is damaged.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startControlPlane } from '../../src/control-plane/control-plane.ts'
import { forEachParallel } from '../../src/platform/parallel.ts'
import { TarWriter } from '../../src/platform/tar.ts'
import { openStore } from '../../src/store/open.ts'
import type { Entry, Json } from '../../src/store/store.ts'
import { isPortable } from '../../src/store/store-state.ts'
import { makeFolder, type Ran, startDev, svc3 } from '../support/processes/dev-server.ts'
import { adminToken, ask, type SharedServers, startShared } from '../support/processes/shared-servers.ts'
import { credentialsPath } from '../support/rigs/service.ts'
import { eventually } from '../support/tools/eventually.ts'

let shared: SharedServers
let work: string
before(async () => {
  ;[shared, work] = [await startShared(), await makeFolder()]
})
after(async () => {
  await shared[Symbol.asyncDispose]()
  await fs.rm(work, { recursive: true, force: true })
})

const inWork = (name: string): string => path.join(work, name)
const prefixed = (prefix: string): string => shared.storeAddress.replace(/[^/]*$/, prefix)
const server = (words: readonly string[], env: Record<string, string> = {}): Promise<Ran> =>
  svc3(['server', ...words], { env, timeoutMs: 120_000 })
const succeeded = (ran: Ran): string => {
  assert.equal(ran.code, 0, ran.stderr)
  return ran.stdout
}

/** All records, except those that every start adds or changes. */
const ofEveryStart = /^\/(cluster|history)\//

async function recordsOf(address: string): Promise<Map<string, Json>> {
  const store = await openStore(address)
  try {
    const { entries } = await store.list('')
    const others = entries.filter((entry: Entry) => isPortable(entry) && !ofEveryStart.test(entry.key))
    return new Map(others.map(({ key, value }) => [key, value]))
  } finally {
    await store.close()
  }
}

const quiet = JSON.stringify({ logLevel: 'silent' })

describe('a server on SQLite', () => {
  let data: string
  let token: string
  const backup = (): string => inWork('all.tar')

  it('a server on SQLite is backed up while it runs, as of one moment', async () => {
    data = inWork('data')
    await fs.mkdir(data)
    await using dev = await startDev(data, { args: ['--driver', 'simulated', '--nodes', 'arm64=1,amd64=0'] })
    token = dev.token
    const credential = { server: 'https://r.example', username: 'bot', password: 'planted-secret' }
    assert.equal((await dev.call('POST', `${credentialsPath}/add`, credential)).status, 201)
    assert.equal((await dev.call('POST', '/api/v1/namespaces', { name: 'svc-before' })).status, 201)
    await fs.writeFile(inWork('disk.raw'), randomBytes(3 * 2 ** 20))
    const env = { SVC3_API_URL: dev.apiUrl, SVC3_TOKEN: dev.token }
    succeeded(await svc3(['image', 'upload', inWork('disk.raw'), '--name', 'mine', '--type', 'arm64'], { env }))
    const said = succeeded(await server(['backup', backup(), '--data', data]))
    assert.match(said, /records as of revision \d+, \d+ files of images/)
    assert.match(said, /Also keep the master key [0-9a-f]{12} \(.*master\.key\)/)
    assert.equal((await dev.call('POST', '/api/v1/namespaces', { name: 'svc-after' })).status, 201)
    assert.equal((await fs.stat(backup())).mode & 0o777, 0o600)
    const again = await server(['backup', backup(), '--data', data])
    assert.deepEqual([again.code, /already exists/.test(again.stderr)], [1, true], again.stderr)
    assert.ok(!(await fs.readFile(backup())).includes('planted-secret'))
    succeeded(await server(['backup', inWork('records.tar'), '--data', data, '--without-images']))
    // The other thing that only the running server can do.
    assert.match(succeeded(await server(['rotate-signing-keys', '--data', data])), /signs tokens from 20.* on/)
    const missing = await server(['restore', inWork('none.tar'), '--data', inWork('never')])
    assert.match(missing.stderr, /File .*none\.tar not found/)
    assert.ok((await fs.stat(inWork('records.tar'))).size < 1_000_000)
    await dev.kill('SIGTERM')
  })

  it('a server on SQLite comes back from it: records, users, images, and the same tokens', async () => {
    const restored = inWork('restored')
    const said = succeeded(await server(['restore', backup(), '--data', restored]))
    assert.match(said, /Before you start a server, put the master key [0-9a-f]{12} in .*master\.key/)
    const without = await server(['--data', restored, '--listen', '127.0.0.1:0'])
    assert.match(without.stderr, /Master key .* not found/)
    await fs.copyFile(path.join(data, 'master.key'), path.join(restored, 'master.key'))
    assert.match(succeeded(await server(['users', 'list', '--data', restored])), /admin@localhost/)
    // The nodes of the old one are hosts of their own, with keys of their own.
    await using dev = await startDev(restored, { args: ['--driver', 'simulated', '--nodes', 'arm64=0,amd64=1'] })
    // The token is of the server that was backed up.
    const headers = { authorization: `Bearer ${token}` }
    const namespaces = (await (await fetch(`${dev.apiUrl}/api/v1/namespaces`, { headers })).json()) as {
      items: { name: string }[]
    }
    assert.deepEqual(namespaces.items.map(({ name }) => name).sort(), ['svc-before', 'svc-default'])
    const credentials = (await dev.call('GET', credentialsPath)).body.items as { server: string }[]
    assert.equal(credentials[0]?.server, 'https://r.example')
    const env = { SVC3_API_URL: dev.apiUrl, SVC3_TOKEN: dev.token }
    succeeded(await svc3(['image', 'download', 'mine', '-f', inWork('back.raw')], { env }))
    assert.ok((await fs.readFile(inWork('back.raw'))).equals(await fs.readFile(inWork('disk.raw'))))
    const taken = await server(['restore', backup(), '--data', restored])
    assert.equal(taken.code, 1)
    await dev.kill('SIGTERM')
    const filled = await server(['restore', backup(), '--data', restored])
    assert.match(filled.stderr, /it already has records/)
  })

  it('a server on SQLite is not restored from what is damaged, cut off, newer, too old, or no backup', async () => {
    const whole = await fs.readFile(backup())
    const bent = Buffer.from(whole)
    bent[whole.length - 5_000] = (bent[whole.length - 5_000] ?? 0) ^ 1
    await fs.writeFile(inWork('bent.tar'), bent)
    await fs.writeFile(inWork('short.tar'), whole.subarray(0, whole.length / 2))
    await fs.writeFile(inWork('other.tar'), 'something else'.repeat(100))
    for (const [name, format] of Object.entries({ newer: 3, older: 1 })) {
      const handle = await fs.open(inWork(`${name}.tar`), 'w')
      const head = { format, version: '9.0.0', revision: '1', records: 0 }
      await new TarWriter(handle).add('backup.json', Buffer.from(JSON.stringify(head)))
      await handle.close()
    }
    const cases: readonly (readonly [string, RegExp])[] = [
      ['bent.tar', /is damaged or incomplete/],
      ['short.tar', /is damaged or incomplete/],
      ['other.tar', /is damaged or incomplete|is not a backup/],
      ['newer.tar', /has format 3, and this program uses 2\. Restore it with svc3 9\.0\.0/],
      ['older.tar', /has format 1, and this program uses 2\. Restore it with svc3 3\.0\.0-alpha\.31, start that once/],
    ]
    for (const [name, problem] of cases) {
      const { code, stderr } = await server(['restore', inWork(name), '--data', inWork('never')])
      assert.equal(code, 1)
      assert.match(stderr, problem)
      await assert.rejects(fs.stat(inWork('never')), `${name} left something behind`)
    }
  })

  it('a server on SQLite moves to etcd, cut off at every step, and serves there with all it had', async () => {
    const to = prefixed('moved')
    await fs.writeFile(path.join(data, 'config.json'), quiet)
    const before = await recordsOf(`sqlite:${data}`)
    {
      await using dev = await startDev(data, { args: ['--driver', 'simulated', '--nodes', 'arm64=0,amd64=1'] })
      const running = await server(['migrate-store', data, to])
      assert.match(running.stderr, /in use by another svc3.*\(stop the server first\)/)
      await dev.kill('SIGTERM')
    }
    const open = { dataFolder: data, storeAddress: to, environment: {} }
    for (const point of ['store.fill', 'migrate.marked', 'migrate.moved']) {
      const cut = await server(['migrate-store', data, to], { SVC3_TEST: '1', SVC3_FAILPOINT: point })
      assert.notEqual(cut.code, 0, point)
      await assert.rejects(shared.start(open), /already has records|is not complete/)
    }
    assert.match(succeeded(await server(['migrate-store', data, to])), /Moved \d+ records as of revision \d+ to etcd:/)
    const moved = await recordsOf(to)
    for (const [key, value] of before) assert.deepEqual(moved.get(key), value, key)
    // A server does not start over without the address, nor with the old file restored.
    const alone = { dataFolder: data, host: '127.0.0.1', port: 0, environment: {}, plainHttp: true }
    await assert.rejects(startControlPlane(alone), /records of .* are in etcd:/)
    const old = inWork('old')
    await fs.mkdir(old)
    await fs.copyFile(path.join(data, 'svc3.db.moved'), path.join(old, 'svc3.db'))
    await fs.copyFile(path.join(data, 'master.key'), path.join(old, 'master.key'))
    await assert.rejects(startControlPlane({ ...alone, dataFolder: old }), /records moved to etcd:/)
    await assert.rejects(server(['migrate-store', data, to]).then(succeeded), /has no records/)

    const plane = await shared.start(open)
    assert.equal((await ask(plane, 'GET', '/namespaces/svc-before', { token })).status, 200)
    assert.deepEqual(
      plane.localUsers?.list().map(({ email }) => email),
      ['admin@localhost'],
    )
    assert.match(succeeded(await server(['users', 'list', '--data', data])), /admin@localhost/)
    await plane.stop()
    const mixed = await server(['restore', backup(), '--data', inWork('mixed'), '--store', to])
    assert.match(mixed.stderr, /it already has records/)
  })
})

describe('servers on etcd', () => {
  it('servers on etcd are backed up at one revision while they write, and come back on etcd and on SQLite', async () => {
    const plane = await shared.start()
    const token = await adminToken(plane)
    assert.equal((await ask(plane, 'POST', '/namespaces', { token, body: { name: 'svc-there' } })).status, 201)
    const store = await openStore(shared.storeAddress)
    // More than a page of a list, and on both sides of it a counter: first the one, then the other.
    const between = Array.from({ length: 1_500 }, (_, n) => `/m/${n}`)
    // All at once, the last would wait for longer than the store does on a busy machine.
    await forEachParallel(between, 32, async (key) => void (await store.create(key, 'x'.repeat(2_000))))
    const stopping = new AbortController()
    const writing = (async () => {
      for (let n = 0; !stopping.signal.aborted; n++) {
        await store.create(`/a/${n}`, n)
        await store.create(`/z/${n}`, n)
        await sleep(1)
      }
    })()
    const file = inWork('etcd.tar')
    const place = ['--store', shared.storeAddress, '--data', await shared.folder()]
    const said = succeeded(
      await server(['backup', file, ...place, '--without-images'], { SVC3_MASTER_KEY: shared.masterKey }),
    )
    assert.match(said, /\(SVC3_MASTER_KEY\)/)
    stopping.abort()
    await writing
    await store.close()
    const env = { SVC3_MASTER_KEY: shared.masterKey }
    const restored = prefixed('again')
    succeeded(await server(['restore', file, '--data', inWork('again'), '--store', restored], env))
    succeeded(await server(['restore', file, '--data', inWork('sqlite')], env))
    const [onEtcd, onSqlite] = [await recordsOf(restored), await recordsOf(`sqlite:${inWork('sqlite')}`)]
    assert.deepEqual(onEtcd, onSqlite)
    const count = (prefix: string): number => [...onEtcd.keys()].filter((key) => key.startsWith(prefix)).length
    assert.ok([0, 1].includes(count('/a/') - count('/z/')), `${count('/a/')} and ${count('/z/')}`)
    assert.equal(count('/m/'), 1_500)
    await fs.writeFile(`${inWork('again')}/config.json`, quiet)
    const second = await shared.start({ dataFolder: inWork('again'), storeAddress: restored })
    const read = await ask(second, 'GET', '/namespaces/svc-there', { token })
    assert.equal(read.status, 200)
    // Revisions do not go back: nodes and watchers would take old for new.
    const at = Number(read.headers.get('svc3-revision'))
    const head = JSON.parse((await fs.readFile(file)).toString('utf8', 512, 2_048).replace(/\0.*$/s, '')) as {
      revision: string
    }
    assert.ok(at > Number(head.revision))
    const eras = second.collections.cluster.get('', 'id')?.value.eras ?? []
    assert.ok(
      eras.some(({ since }) => since === head.revision),
      'nodes are told how far these data go',
    )
  })

  it('servers on etcd take keys and users from commands on any machine that has the store and the master key', async () => {
    const plane = await shared.start()
    const before = await adminToken(plane)
    const place = ['--store', shared.storeAddress, '--data', await shared.folder()]
    const env = { SVC3_MASTER_KEY: shared.masterKey }
    const wrong = await server(['rotate-signing-keys', ...place], {
      SVC3_MASTER_KEY: randomBytes(32).toString('base64'),
    })
    assert.match(wrong.stderr, /not in the key ring/)
    assert.match(
      succeeded(await server(['rotate-signing-keys', ...place], env)),
      /signs tokens from 20.* on\. One older key stays valid/,
    )
    assert.match(
      succeeded(await server(['rotate-signing-keys', '--revoke', ...place], env)),
      /All earlier tokens are revoked/,
    )
    await eventually(async () => assert.equal((await ask(plane, 'GET', '/namespaces', { token: before })).status, 401))
    const add = ['server', 'users', 'add', 'eve@example.com', '--password-stdin', ...place]
    succeeded(await svc3(add, { env, input: 'a long pass phrase\n' }))
    await eventually(async () => assert.ok(await plane.localUsers?.verify('eve@example.com', 'a long pass phrase')))
  })
})
