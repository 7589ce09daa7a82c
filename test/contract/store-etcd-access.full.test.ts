// Who may use etcd, and how much it holds: passwords, client certificates, permissions, the quota of space.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parseEtcdAddress } from '../../src/store/etcd/address.ts'
import { openEtcd } from '../../src/store/etcd/engine.ts'
import { openStore } from '../../src/store/open.ts'
import type { Entry, Store } from '../../src/store/store.ts'
import { type EtcdCluster, startEtcd } from '../support/processes/etcd.ts'
import { makePair } from '../support/tools/certificates.ts'
import { eventually } from '../support/tools/eventually.ts'
import { rejectsWith } from './store.ts'
import { collect } from './store-watch.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

describe('etcd with users and certificates', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-etcd-access-'))
  const place = (name: string, text: string): string => {
    fs.writeFileSync(path.join(folder, name), text, { mode: 0o600 })
    return path.join(folder, name)
  }
  const inFolder = (name: string): string => path.join(folder, name)
  let etcd: EtcdCluster
  const plain = (rest: string, prefix = 'ours'): Promise<Store> =>
    openStore(`etcd://${new URL(etcd.urls[0] ?? '').host}/${prefix}?${rest}`)
  const secure = (rest: string, timeoutMs = 2_000): Promise<Store> => {
    const place = `//${new URL(etcd.tlsUrls[0] ?? '').host}/ours?${rest}`
    return openEtcd({ ...parseEtcdAddress(place, () => undefined), timeoutMs })
  }

  before(async () => {
    const authority = await makePair({ name: 'ca', isAuthority: true })
    const server = await makePair({ name: 'localhost', issuer: authority, use: 'serverAuth' })
    const client = await makePair({ name: 'svc3', issuer: authority, use: 'clientAuth' })
    const stranger = await makePair({ name: 'ca', isAuthority: true })
    const files = { ca: authority.cert, 'server.pem': server.cert, 'server.key': server.key, 'client.pem': client.cert }
    for (const [name, text] of Object.entries(files)) place(name, text)
    place('client.key', client.key)
    place('stranger', stranger.cert)
    place('password', 'right\n')
    place('wrong-password', 'wrong\n')
    const tls = { ca: inFolder('ca'), cert: inFolder('server.pem'), key: inFolder('server.key') }
    etcd = await startEtcd({ tls, args: ['--bcrypt-cost=4'] })
    const ask = (where: string, body: object): Promise<unknown> => etcd.post(`/v3/auth/${where}`, body)
    for (const [name, password] of [
      ['root', 'rooted'],
      ['svc3', 'right'],
    ])
      await ask('user/add', { name, password })
    for (const name of ['root', 'ours']) await ask('role/add', { name })
    const perm = { permType: 'READWRITE', key: base64('/ours/'), range_end: base64('/ours0') }
    await ask('role/grant', { name: 'ours', perm })
    await ask('user/grant', { user: 'root', role: 'root' })
    await ask('user/grant', { user: 'svc3', role: 'ours' })
    await ask('enable', {})
  })
  after(async () => {
    await etcd.end()
    fs.rmSync(folder, { recursive: true, force: true })
  })

  it('etcd takes a user with a password, also after its tokens were forgotten', async () => {
    const store = await plain(`user=svc3&password-file=${inFolder('password')}`)
    const seen = collect(store, '/p/', '0', (changes) => changes.length === 2)
    const { rev } = await store.create('/p/a', 1)
    // A restart forgets every token.
    await etcd.members[0]?.kill()
    await etcd.members[0]?.start()
    await store.update('/p/a', 2, rev)
    assert.equal((await seen).length, 2)
    assert.equal((await store.health()).ok, true)
    await store.close()
  })

  it('etcd takes many creates at once from a user whose role is for our keys only', async () => {
    const store = await plain(`user=svc3&password-file=${inFolder('password')}`)
    const made = await Promise.all(Array.from({ length: 20 }, (_, n) => store.create(`/at-once/${n}`, n)))
    assert.equal(new Set(made.map(({ rev }) => rev)).size, 20)
    await store.close()
  })

  it('a password of etcd is taken up that is changed while it is in use', async () => {
    const store = await plain(`user=svc3&password-file=${inFolder('password')}`)
    const { rev } = await store.create('/n/a', 1)
    const root = await etcd.post('/v3/auth/authenticate', { name: 'root', password: 'rooted' })
    place('password', 'renewed\n')
    // etcd revokes the tokens of a user whose password changes.
    const changed = await fetch(`${etcd.urls[0]}/v3/auth/user/changepw`, {
      method: 'POST',
      headers: { authorization: String(root.token) },
      body: JSON.stringify({ name: 'svc3', password: 'renewed' }),
    })
    assert.equal(changed.status, 200)
    assert.equal((await store.update('/n/a', 2, rev)).value, 2)
    await store.close()
  })

  it('a refused login at etcd says what is wrong: no user, a wrong password, no permission', async () => {
    await rejectsWith('Unavailable', plain('tls=false'), /refuses the login.*password-file/)
    await rejectsWith(
      'Unavailable',
      plain(`user=svc3&password-file=${inFolder('wrong-password')}`),
      /refuses the login/,
    )
    await rejectsWith('Unavailable', plain(`user=svc3&password-file=${inFolder('none')}`), /Cannot read/)
    const elsewhere = plain(`user=svc3&password-file=${inFolder('password')}`, 'theirs')
    await rejectsWith('Unavailable', elsewhere, /refuses this user.*grant/)
  })

  it('etcd takes a user by the name in its certificate, and nobody without one or who does not know the authority', async () => {
    const pair = `cert=${inFolder('client.pem')}&key=${inFolder('client.key')}`
    const store = await secure(`ca=${inFolder('ca')}&${pair}`, 60_000)
    const seen = collect(store, '/c/', '0', (changes) => changes.length === 1)
    const entry = await store.create('/c/a', 1)
    assert.deepEqual(await seen, [{ type: 'put', entry }])
    await store.close()
    await rejectsWith('Unavailable', secure(`ca=${inFolder('ca')}`), /does not answer/)
    await rejectsWith('Unavailable', secure(`ca=${inFolder('stranger')}&${pair}`), /certificate/)
  })
})

it('a writer that etcd refuses for want of space has written nothing, one that it does not refuse has written', async () => {
  await using etcd = await startEtcd({ args: ['--quota-backend-bytes=4000000'] })
  await using cleanup = new AsyncDisposableStack()
  const store = await openStore(`etcd://${new URL(etcd.urls[0] ?? '').host}/full`)
  cleanup.defer(() => store.close())
  const padding = 'x'.repeat(300_000)
  const asked: PromiseSettledResult<Entry>[] = []
  // All of a round ask while there is room, and etcd refuses with the same word what it then does and what it does not.
  // More than the quota in all, and no more than a busy machine writes within the second that a try has.
  for (let round = 0; !asked.some(({ status }) => status === 'rejected'); round++) {
    assert.ok(round < 5, 'the quota is not used up')
    const short: Entry[] = []
    for (let n = 0; round === 0 && n < 8; n++) short.push(await store.create(`/q/old${n}`, 'short'))
    const creates = Array.from({ length: 8 }, (_, n) => store.create(`/q/new${round}-${n}`, padding))
    const updates = short.map(({ key, rev }) => store.update(key, padding, rev))
    asked.push(...(await Promise.allSettled([...creates, ...updates])))
  }
  const written = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  for (const each of asked)
    if (each.status === 'rejected')
      assert.match(String(each.reason), /^StoreError: etcd has used up its quota of space.*nothing was written/)
  assert.ok(written.length > 0)
  const { entries } = await store.list('/q/')
  const large = entries.filter(({ value }) => value === padding)
  assert.deepEqual(
    large.map(({ key, rev }) => `${key} ${rev}`).sort(),
    written.map(({ key, rev }) => `${key} ${rev}`).sort(),
  )
})

it('many small creates on etcd are refused, and write nothing, once its quota is used up', async () => {
  await using etcd = await startEtcd({ args: ['--quota-backend-bytes=4000000'] })
  await using cleanup = new AsyncDisposableStack()
  const store = await openStore(`etcd://${new URL(etcd.urls[0] ?? '').host}/small`)
  cleanup.defer(() => store.close())
  const value = 'x'.repeat(4_000)
  const createMany = (round: number): Promise<PromiseSettledResult<Entry>[]> =>
    Promise.allSettled(Array.from({ length: 100 }, (_, n) => store.create(`/s/${round}-${n}`, value)))
  let round = 0
  // etcd counts what it has committed, ten times a second: until then a quick writer gets further.
  while ((await createMany(round)).every(({ status }) => status === 'fulfilled'))
    assert.ok(++round < 150, 'the quota is not used up')
  const there = (await store.list('/s/')).entries.length
  for (const each of await createMany(++round))
    assert.match(String(each.status === 'rejected' && each.reason), /^StoreError: etcd has used up its quota of space/)
  assert.equal((await store.list('/s/')).entries.length, there)
})

it('etcd that refuses too large a request, or has used up its quota, is reported; reads go on; it recovers', async () => {
  await using etcd = await startEtcd({ args: ['--quota-backend-bytes=4000000', '--max-request-bytes=310000'] })
  await using cleanup = new AsyncDisposableStack()
  const store = await openStore(`etcd://${new URL(etcd.urls[0] ?? '').host}/full`)
  cleanup.defer(() => store.close())
  // Refused by etcd, and by what it takes requests with.
  for (const length of [320_000, 900_000])
    await rejectsWith(
      'TooLarge',
      store.create('/q/large', 'x'.repeat(length)),
      /max-request-bytes; nothing was written/,
    )
  assert.equal(await store.get('/q/large'), undefined)
  const padding = 'x'.repeat(300_000)
  let entry = await store.create('/q/a', padding)
  await rejectsWith(
    'Unavailable',
    (async () => {
      for (let n = 0; n < 100; n++) entry = await store.update('/q/a', padding, entry.rev)
    })(),
    /quota of space.*alarm disarm.*nothing was written/,
  )
  const { ok, message } = await store.health()
  assert.equal(ok, false)
  assert.match(message, /quota of space.*alarm disarm/)
  assert.deepEqual(await store.list('/q/'), { entries: [entry], rev: entry.rev })
  await store.compact(entry.rev)
  await rejectsWith('Unavailable', store.create('/q/b', 1), /alarm disarm/)
  // etcd compacts in its own time; the operator's two steps come after that.
  await eventually(async () => {
    await etcd.post('/v3/maintenance/defragment', {})
    const { alarms } = (await etcd.post('/v3/maintenance/alarm', { action: 'GET' })) as { alarms?: object[] }
    for (const alarm of alarms ?? []) await etcd.post('/v3/maintenance/alarm', { action: 'DEACTIVATE', ...alarm })
    await store.create('/q/b', padding)
  })
  assert.equal((await store.health()).ok, true)
})
