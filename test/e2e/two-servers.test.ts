// Two servers on one etcd: what one wrote the other reads and watches, tokens of one are good on the other, one of them
// leads, and the other one takes over when it stops.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import { it } from 'node:test'
import { type ControlPlane, startControlPlane } from '../../src/control-plane/control-plane.ts'
import { openStore } from '../../src/store/open.ts'
import { makeFolder } from '../support/processes/dev-server.ts'
import { startEtcd } from '../support/processes/etcd.ts'
import { eventually } from '../support/tools/eventually.ts'

it('two servers share records, tokens and one leader', async () => {
  await using etcd = await startEtcd()
  await using cleanup = new AsyncDisposableStack()
  const storeAddress = `etcd://${new URL(etcd.urls[0] ?? '').host}/pair`
  const masterKey = randomBytes(32).toString('base64')
  const start = async (folder?: string): Promise<ControlPlane> => {
    const dataFolder = folder ?? (await makeFolder())
    cleanup.defer(() => fs.rm(dataFolder, { recursive: true, force: true }))
    await fs.writeFile(`${dataFolder}/config.json`, JSON.stringify({ logLevel: 'silent' }))
    const environment = { SVC3_MASTER_KEY: masterKey }
    const plane = await startControlPlane({ dataFolder, storeAddress, host: '127.0.0.1', port: 0, environment, plainHttp: true }) // biome-ignore format: one line
    cleanup.defer(() => plane.stop())
    return plane
  }
  // At once, on nothing: both want to make the first keys and the first namespace.
  const [first, second] = await Promise.all([start(), start()])
  // Records of one's own beside those that are shared would be forgotten, or sealed under another key.
  const mixed = await makeFolder()
  await fs.writeFile(`${mixed}/svc3.db`, '')
  await assert.rejects(start(mixed), /already has records in svc3\.db/)
  const { token } = await first.tokens.issue({ kind: 'user', name: 'admin@example.com', admin: true })
  const ask = async (plane: ControlPlane, method: string, where: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    return fetch(`${plane.localUrl}/api/v1/namespaces${where}`, { ...sent, signal: AbortSignal.timeout(10_000) })
  }
  const watch = await ask(second, 'GET', '?watch=true')
  assert.equal(watch.status, 200)
  const created = await ask(first, 'POST', '', { name: 'svc-team' })
  assert.equal(created.status, 201, await created.clone().text())
  let seen = ''
  for await (const chunk of watch.body ?? []) {
    seen += Buffer.from(chunk).toString()
    if (seen.includes('svc-team')) break
  }
  assert.match(seen, /ADDED.*svc-team/)
  assert.equal((await ask(second, 'GET', '/svc-team')).status, 200)
  assert.equal((await ask(second, 'POST', '', { name: 'svc-team' })).status, 409)

  const store = await openStore(storeAddress)
  cleanup.defer(() => store.close())
  const leader = async () =>
    (await store.get('/leadership/controllers'))?.value as { holder: string | null; term: number }
  await eventually(async () => assert.equal(first.isLeading(), !second.isLeading()))
  const { holder } = await leader()
  const [leads, follows] = first.isLeading() ? [first, second] : [second, first]
  await leads.stop()
  await eventually(async () => {
    const next = await leader()
    assert.ok(next.term === 2 && next.holder !== null && next.holder !== holder, JSON.stringify(next))
  })
  await eventually(async () => assert.ok(follows.isLeading()))
  // Without etcd, reads from memory continue and changes are refused.
  etcd.members[0]?.pause()
  const refused = await ask(follows, 'POST', '', { name: 'svc-later' })
  assert.equal(refused.status, 503, await refused.clone().text())
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  assert.equal((await ask(follows, 'GET', '/svc-team')).status, 200)
  etcd.members[0]?.resume()
  await eventually(async () => assert.equal((await ask(follows, 'DELETE', '/svc-team')).status, 200))
})
