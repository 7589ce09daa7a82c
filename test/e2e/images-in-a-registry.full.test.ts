// The images of a cluster in a registry, Debian's docker-registry with TLS and a password: all that is done with
// images, with a server that is killed in the middle of a save; and several servers that share nothing but etcd and the
// registry.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { ControlPlane } from '../../src/control-plane/control-plane.ts'
import { openRegistry, type Repository } from '../../src/oci/registry/registry.ts'
import { filesIn, makeFolder } from '../support/processes/dev-server.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/processes/registry.ts'
import { adminToken, ask, startShared } from '../support/processes/shared-servers.ts'
import { ClusterRig } from '../support/rigs/cluster-rig.ts'
import { startTcpProxy, type TcpProxy } from '../support/stand-ins/tcp-proxy.ts'
import { makePair, type TestPair } from '../support/tools/certificates.ts'
import { eventually } from '../support/tools/eventually.ts'

const block = 65_536
let root: string
let authority: TestPair
let registry: RegistryProcess
/** What the servers know it by. */
let way: TcpProxy

before(async () => {
  root = await makeFolder()
  authority = await makePair({ name: 'authority', isAuthority: true })
  await fs.writeFile(path.join(root, 'ca.pem'), authority.cert)
  await fs.writeFile(path.join(root, 'password'), `${registryUser.password}\n`)
  const tls = await makePair({ issuer: authority })
  registry = await startRegistry({ folder: path.join(root, 'registry'), hasPassword: true, tls })
  way = await startTcpProxy(Number(new URL(registry.server).port))
})
after(async () => {
  await way[Symbol.asyncDispose]()
  await registry.kill()
  await fs.rm(root, { recursive: true, force: true })
})

const settings = (prefix: string) => ({
  address: `oci://127.0.0.1:${way.port}/${prefix}`,
  username: registryUser.username,
  passwordFile: path.join(root, 'password'),
  caFile: path.join(root, 'ca.pem'),
})

/** What a stranger finds there. */
async function inRegistry<T>(prefix: string, look: (repository: Repository) => Promise<T>): Promise<T> {
  const { server } = registry
  const policy = { allowPrivate: true, allowLoopback: true }
  const opened = openRegistry({ server, credentials: registryUser, ca: authority.cert, policy })
  return look(opened.repository(prefix)).finally(() => opened.close())
}

const imagesThere = async (prefix: string): Promise<readonly string[]> =>
  (await inRegistry(prefix, (repository) => repository.tags()))
    .filter((tag) => tag.startsWith('image-'))
    .map((tag) => tag.replace('image-', 'sha256:'))

function someDisk(): Buffer {
  const disk = Buffer.alloc(40 * block)
  randomBytes(10 * block).copy(disk, 2 * block)
  return disk
}

describe('a server with its images in a registry', { timeout: 240_000 }, () => {
  it('a server with its images in a registry uploads, deploys, saves, commits and downloads them, whenever it is killed', async () => {
    const images = settings('one/images')
    await using rig = await ClusterRig.make('amd64', { images })
    await rig.startAgent()
    const base = await rig.upload('base', someDisk())
    await rig.deploy('demo', 'base')
    assert.deepEqual(await imagesThere('one/images'), [base])
    const isOnDisk = async (name: string, truth: Buffer): Promise<string> => {
      const { checksum = '' } = await rig.isIn(name, 'Ready')
      const file = path.join(rig.root, `${name}.raw`)
      const ran = await rig.svc3('image', 'download', name, '-f', file)
      assert.equal(ran.code, 0, ran.stderr)
      assert.ok((await fs.readFile(file)).equals(truth), `${name} is not what was on the disk`)
      return checksum
    }

    const truth = await rig.write('demo')
    const points = ['images.put.write', 'images.put.rename', 'images.hold', 'captures.finish']
    await rig.restart(points[0])
    const save = () => rig.ask('POST', '/vms/demo/save', { imageName: 'saved' }, { 'idempotency-key': 'save' })
    await save()
    for (const next of [...points.slice(1), undefined]) {
      await rig.died(next)
      await save()
    }
    const saved = await isOnDisk('saved', truth)
    await rig.isAtRest('demo')

    const later = await rig.write('demo')
    await rig.call('POST', '/vms/demo/commit', {})
    await rig.isAtRest('demo')
    const committed = await isOnDisk('base', later)
    const there = await imagesThere('one/images')
    for (const digest of [base, saved, committed]) assert.ok(there.includes(digest))
    // Nothing of it is where it would be without a registry, and the password is nowhere.
    assert.deepEqual(await fs.readdir(rig.content).catch(() => 'none'), 'none')
    assert.ok(!rig.server.output().includes(registryUser.password))
  })
})

describe('servers that share a registry', { timeout: 240_000 }, () => {
  it('servers that share a registry have the same images at once, whatever is on their disks; and one of them collects for all', async () => {
    await using shared = await startShared()
    const prefix = 'shared/images'
    const { address, ...access } = settings(prefix)
    const folder = async (): Promise<string> => {
      const made = await shared.folder()
      await fs.writeFile(path.join(made, 'config.json'), JSON.stringify({ logLevel: 'silent', images: access }))
      return made
    }
    const folders = [await folder(), await folder()] as const
    const start = (dataFolder: string, more = {}) => shared.start({ dataFolder, images: address, ...more })
    const first = await start(folders[0])
    const token = await adminToken(first)
    const disk = someDisk()
    const upload = async (plane: ControlPlane, name: string): Promise<string> => {
      const answer = await fetch(
        `${plane.localUrl}/api/v1/namespaces/svc-default/upload/image?name=${name}&type=amd64`,
        {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
          body: new Uint8Array(disk),
        },
      )
      const body = (await answer.json()) as { checksum: string }
      assert.equal(answer.status, 201, JSON.stringify(body))
      return body.checksum
    }
    const download = (plane: ControlPlane, name: string) =>
      ask(plane, 'GET', `/namespaces/svc-default/images/${name}/download`, { token })
    const digest = await upload(first, 'disk')

    const second = await start(folders[1])
    assert.ok(Buffer.from(await (await download(second, 'disk')).arrayBuffer()).equals(disk))
    for (const each of folders) assert.ok(!(await filesIn(each)).some((file) => file.includes('content/')))

    // Another place would be an empty one; and this one is not for another cluster.
    const others = await shared.folder()
    await assert.rejects(shared.start({ dataFolder: others }), /images of these records are in oci:/)
    await assert.rejects(start(await folder(), { storeAddress: `${shared.storeAddress}-other` }), /another cluster/)

    // With the registry down, requests that need it say so, everything else works, and servers start.
    way.close()
    await fs.rm(path.join(folders[1], 'content-cache', 'blobs'), { recursive: true })
    const refused = await download(second, 'disk')
    assert.equal(refused.status, 503, await refused.text())
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
    const ready = await fetch(`${second.localUrl}/readyz`)
    assert.equal(ready.status, 200)
    assert.match(await ready.text(), /ready, but the registry with the images is not/)
    await second.stop()
    const again = await start(folders[1])
    way.open()
    await eventually(async () => assert.equal((await download(again, 'disk')).status, 200))

    assert.equal((await ask(again, 'DELETE', '/namespaces/svc-default/images/disk', { token })).status, 200)
    assert.deepEqual(await imagesThere(prefix), [digest])
    await again.stop()
    await first.stop()
    // What it sees for the first time was there an hour ago.
    await start(folders[0], { clock: { now: () => new Date(Date.now() - 3_600_000) } })
    await eventually(async () => assert.deepEqual(await imagesThere(prefix), []))
  })
})
