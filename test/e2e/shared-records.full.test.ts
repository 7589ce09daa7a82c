// Two servers with separate disks on one etcd: uploads resume where their bytes are, content comes from the other, one
// server's start leaves alone what the other is working on, and a join string is good for one host, whichever is asked.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type ControlPlane, startControlPlane } from '../../src/control-plane/control-plane.ts'
import { decodeJoinString } from '../../src/rules/join-string.ts'
import { makeFolder } from '../support/processes/dev-server.ts'
import { type EtcdCluster, startEtcd } from '../support/processes/etcd.ts'
import { eventually } from '../support/tools/eventually.ts'

const timeoutMs = 60_000
const inDefault = '/namespaces/svc-default'
const cleanup = new AsyncDisposableStack()
const masterKey = randomBytes(32).toString('base64')
let etcd: EtcdCluster
let one: ControlPlane
let other: ControlPlane
let token: string

async function start(folder?: string): Promise<ControlPlane> {
  const dataFolder = folder ?? (await makeFolder())
  cleanup.defer(() => fs.rm(dataFolder, { recursive: true, force: true }))
  await fs.writeFile(path.join(dataFolder, 'config.json'), JSON.stringify({ logLevel: 'silent' }))
  const storeAddress = `etcd://${new URL(etcd.urls[0] ?? '').host}/shared`
  const environment = { SVC3_MASTER_KEY: masterKey }
  const plane = await startControlPlane({ dataFolder, storeAddress, host: '127.0.0.1', port: 0, environment, plainHttp: true }) // biome-ignore format: one line
  cleanup.defer(() => plane.stop())
  return plane
}

before(async () => {
  etcd = cleanup.use(await startEtcd())
  one = await start()
  other = await start()
  token = (await one.tokens.issue({ kind: 'user', name: 'admin@example.com', admin: true })).token
})
after(() => cleanup.disposeAsync())

interface Sent {
  readonly body?: object | Buffer
  readonly isOpen?: boolean
}

async function call(plane: ControlPlane, method: string, where: string, { body, isOpen }: Sent = {}) {
  const type = body instanceof Buffer ? 'application/octet-stream' : 'application/json'
  const response = await fetch(`${plane.localUrl}/api/v1${where}`, {
    method,
    headers: { ...(!isOpen && { authorization: `Bearer ${token}` }), ...(body && { 'content-type': type }) },
    ...(body && { body: body instanceof Buffer ? new Uint8Array(body) : JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  return { status: response.status, bytes, body: (isJson ? JSON.parse(bytes.toString()) : undefined) as any }
}

describe('servers that share records and not disks', () => {
  const disk = Buffer.concat([Buffer.alloc(2 ** 20), randomBytes(3 * 2 ** 20)])

  it('servers that share records and not disks take an upload to where its bytes are, whichever gets the next part', async () => {
    const begun = await call(one, 'POST', `${inDefault}/uploads`, {
      body: { kind: 'image', name: 'parts', size: disk.length, key: 'k', type: 'amd64' },
    })
    assert.equal(begun.status, 201, JSON.stringify(begun.body))
    const upload = `${inDefault}/uploads/${begun.body.id}`
    const half = disk.length / 2
    for (const [plane, from] of [
      [one, 0],
      [other, half],
    ] as const) {
      // biome-ignore format: pairs
      const part = await call(plane, 'PUT', `${upload}?offset=${from}`, { body: disk.subarray(from, from + half) })
      assert.equal(part.status, 200, JSON.stringify(part.body))
      assert.equal(part.body.offset, from + half)
    }
    assert.equal((await call(other, 'GET', upload)).body.offset, disk.length)
    const sha256 = createHash('sha256').update(disk).digest('hex')
    const done = await call(other, 'POST', `${upload}/finish`, { body: { sha256 } })
    assert.equal(done.status, 201, JSON.stringify(done.body))
  })

  it('servers that share records and not disks hand out content that the other has, and keep a copy for when it is gone', async () => {
    const there = await call(other, 'GET', `${inDefault}/images/parts/download`)
    assert.equal(there.status, 200)
    assert.ok(there.bytes.equals(disk))
    const third = await start()
    await eventually(async () => {
      const alone = await call(third, 'GET', `${inDefault}/images/parts/download`)
      assert.ok(alone.status === 200 && alone.bytes.equals(disk))
    }, timeoutMs)
    await third.stop()
  })

  it('servers that share records and not disks leave alone what another one is taking in, and end it when that one is not there any more', async () => {
    const image = {
      description: '',
      architecture: 'amd64',
      sizeBytes: 1,
      state: 'Updating',
      sourceType: 'userUpload',
      owner: 'a',
      createdAt: '2026-11-15T09:00:00Z',
      updatedAt: '2026-11-15T09:00:00Z',
    } as const
    const idOf = ({ apiUrl }: ControlPlane): string =>
      one.collections.servers.list().find(({ value }) => value.apiUrl === apiUrl)?.value.id ?? ''
    await one.collections.images.create('', 'coming', { ...image, name: 'coming', server: idOf(one) })
    const third = await start()
    assert.ok(third.collections.images.get('', 'coming'))
    await third.collections.images.create('', 'orphan', { ...image, name: 'orphan', server: idOf(third) })
    await third.stop()
    await eventually(async () => assert.equal(one.collections.images.get('', 'orphan'), undefined), timeoutMs)
    assert.ok(one.collections.images.get('', 'coming'))
    // Only a start on unused data begins a new era: nodes take a new era for restored data.
    assert.equal(one.collections.cluster.get('', 'id')?.value.eras?.length, 1)
  })

  it('servers that share records and not disks let one host join by one string, and the same host again', async () => {
    const issued = await call(one, 'POST', `${inDefault}/jointokens`)
    const join = decodeJoinString(issued.body.join)
    assert.equal(issued.body.token, join?.token, 'nothing beside it is good for more hosts')
    assert.deepEqual(join?.urls.toSorted(), [one.apiUrl, other.apiUrl].toSorted())
    const keys = ['host-1', 'host-2'].map((name) => {
      const der = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' })
      return { token: join?.token ?? '', name, publicKey: der.toString('base64') }
    })
    const joined = (plane: ControlPlane, body: object | undefined) =>
      call(plane, 'POST', '/agent/join', { ...(body && { body }), isOpen: true })
    assert.equal((await joined(one, keys[0])).status, 201)
    const refused = await joined(other, keys[1])
    assert.deepEqual([refused.status, /was already used/.test(refused.body.message)], [401, true])
    assert.equal((await joined(other, keys[0])).status, 200)
    // Removed, it does not come back by the same string.
    assert.equal((await call(one, 'DELETE', `${inDefault}/nodes/host-1`)).status, 200)
    assert.equal((await joined(one, keys[0])).status, 401)
    const many = decodeJoinString(
      (await call(one, 'POST', `${inDefault}/jointokens`, { body: { reusable: true } })).body.join,
    )
    for (const key of keys) assert.equal((await joined(other, { ...key, token: many?.token })).status, 201)
    for (const { name } of keys) await call(one, 'DELETE', `${inDefault}/nodes/${name}`)
  })

  it('servers that share records and not disks reach a host that lets nothing in: its agent listens nowhere; who waits for it outwaits a server that stops', async () => {
    const third = await start()
    const body = { image: 'parts', name: 'inside', cpu: 1, memory: 1 }
    const deployed = call(third, 'POST', `${inDefault}/vms`, { body })
    await eventually(async () => assert.ok(third.collections.vms.get('svc-default', 'inside')), timeoutMs)
    const stopped = third.stop()
    const { token: joinToken } = await one.nodeKeys.issueJoinToken('svc-default', 600)
    const folder = await makeFolder()
    cleanup.defer(() => fs.rm(folder, { recursive: true, force: true }))
    const program = path.join(import.meta.dirname, '../support/processes/agent-process.ts')
    const agent = spawn(process.execPath, [program, one.localUrl, joinToken, path.join(folder, 'behind-nat')])
    cleanup.defer(() => void agent.kill('SIGKILL'))
    const vm = await deployed
    assert.equal(vm.status, 201, JSON.stringify(vm.body))
    await stopped
    for (const plane of [one, other]) {
      const logs = await call(plane, 'GET', `${inDefault}/vms/inside/logs`)
      assert.deepEqual([logs.status, /inside is up/.test(logs.bytes.toString())], [200, true])
    }
    assert.deepEqual(await listeningSockets(agent.pid ?? 0), [])
    assert.equal((await call(one, 'DELETE', `${inDefault}/vms/inside`)).status, 200)
  })
})

/** The sockets of a process on which something could come in, by their inodes. */
async function listeningSockets(pid: number): Promise<string[]> {
  const handles = await fs.readdir(`/proc/${pid}/fd`)
  const links = await Promise.all(handles.map((each) => fs.readlink(`/proc/${pid}/fd/${each}`).catch(() => '')))
  const own = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
  assert.ok(own.size > 0)
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => fs.readFile(`/proc/${pid}/net/${name}`, 'utf8')))
  const rows = tables.flatMap((table) => table.trim().split('\n').slice(1)).map((row) => row.trim().split(/\s+/))
  const listening = '0A'
  return rows.filter((row) => row[3] === listening).flatMap((row) => (own.has(row[9] ?? '') ? (row[9] ?? []) : []))
}
