// Images of registries at the server: looked up once with the credentials of the namespace, refused with useful messages,
// and pulled into the cluster in the background.
import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type RegistryProcess, registryUser, startRegistry } from '../../../../test/support/processes/registry.ts'
import { type Answer, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { makeSmallImage, type SmallImage } from '../../../../test/support/rigs/small-image.ts'
import { reply, startBadRegistry } from '../../../../test/support/stand-ins/bad-registry.ts'
import { startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { putTart } from '../../../../test/support/stand-ins/tart.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import { pullImages } from '../../../controllers/pull-images.ts'
import { restoreDisk } from '../../../images/pack/restore.ts'
import { hasAllContent, putManifest, readManifest } from '../../../images/pack/stored-manifests.ts'
import { imageSource } from '../../../oci/artifact/image-target.ts'
import { ociConfigType, ociManifestType, rawManifest } from '../../../oci/artifact/oci-manifest.ts'
import { copy } from '../../../oci/copy.ts'
import { openRegistry, type Registry } from '../../../oci/registry/registry.ts'
import type { Loop } from '../../../platform/loop.ts'
import { createPulls } from '../../remotes/image-pulls.ts'

const base = '/api/v1/namespaces/svc-default'
const mib = 2 ** 20
const tartDisk = Buffer.concat([randomBytes(mib), Buffer.alloc(mib)])
let folder: string
let small: SmallImage
let process: RegistryProcess
let service: TestService
let pulls: Loop
let connected: Registry

before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-registry-images-'))
  process = await startRegistry({ folder: path.join(folder, 'registry'), hasPassword: true })
  small = await makeSmallImage(path.join(folder, 'image'), 2)
  connected = openRegistry({
    server: process.server,
    allowInsecure: true,
    credentials: registryUser,
    policy: { allowPrivate: false, allowLoopback: true },
  })
  await publish(small.digest, 'v1')
  await publish(await putManifest(small.store, { ...small.manifest, architecture: 'amd64' }), 'intel')
  await putTart(connected.repository('team/image'), 'tart', { disk: tartDisk, layerBytes: mib })
  await putStranger()
  const ca = { 'lost.example.com': path.join(folder, 'lost.crt') }
  service = await startService({ settings: { registries: { allowPrivate: true, allowLoopback: true, ca } } })
  pulls = pullImages(service.services, createPulls(service.services))
})
after(async () => {
  await pulls.stop()
  await service[Symbol.asyncDispose]()
  connected.close()
  await process.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

const publish = (digest: string, tag: string) =>
  copy(
    { target: imageSource(small.store), reference: digest },
    { target: connected.repository('team/image'), reference: tag },
  )

/** Artifacts of other programs. */
async function putStranger(): Promise<void> {
  const target = connected.repository('team/image')
  const bytes = Buffer.from('{}')
  const digest = `sha256:${hash('sha256', bytes)}`
  const config = { mediaType: ociConfigType, digest, size: bytes.length }
  const manifest = rawManifest(
    ociManifestType,
    Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: ociManifestType, config, layers: [config] })),
  )
  await target.put(config, {
    async *open() {
      yield bytes
    },
  })
  await target.finish(manifest, 'stranger')
}

const image = (tag: string): string => `${process.host}/team/image:${tag}`
const deploy = (name: string, more: object = {}, at = service): Promise<Answer> =>
  at.call('POST', `${base}/vms?wait=false`, { body: { image: name, ...more } })
const credentials = (password: string, at = service, server = process.server): Promise<Answer> =>
  at.call('POST', `${base}/secrets/registrycredentials/add`, {
    body: { server, username: registryUser.username, password, allowInsecure: true, replace: true },
  })
const pull = (name: string, body: object = {}): Promise<Answer> =>
  service.call('POST', `${base}/remoteimages/${encodeURIComponent(name)}/pull`, { body })

/** The name of an image in a registry that has answered the server and then ended. */
async function leftRegistry(): Promise<string> {
  const left = await startBadRegistry()
  const name = `127.0.0.1:${left.port}/team/image`
  await credentials('canary', service, left.server)
  assert.equal((await deploy(name)).status, 404)
  await left.close()
  return name
}

describe('a deployment from a registry', () => {
  it('a deployment from a registry is refused with a hint, and leaves nothing behind', async () => {
    const refused = async (status: number, words: RegExp, name: string, at = service): Promise<void> => {
      const { status: actual, body, text } = await deploy(name, {}, at)
      assert.equal(actual, status, text)
      assert.match(`${body.message} ${body.hint}`, words)
      assert.doesNotMatch(text, /canary/)
    }
    const plain = /No credentials for registry .* in svc-default.* svc3 regcred add http:.*--allow-insecure/
    await refused(409, plain, image('v1'))
    await refused(409, /Cannot read .*lost\.crt .*\(ENOENT\).*registries\.ca/, 'lost.example.com/team/image:v1')
    await credentials(registryUser.password, service, process.server.replace('http:', 'https:'))
    await refused(409, /does not use HTTPS.*svc3 regcred add http:.*--allow-insecure --replace/, image('v1'))
    await service.call('DELETE', `${base}/secrets/registrycredentials/remove`, {
      body: { server: `https://${process.host}` },
    })
    await credentials('canary-wrong')
    await refused(409, /with the credentials of svc-default.*rejected the credentials.*regcred add/, image('v1'))
    await credentials(registryUser.password)
    await refused(404, /not found/, image('none'))
    await refused(422, /it is for amd64, not arm64/, image('intel'))
    await refused(422, /it is not a VM image/, image('stranger'))
    await refused(422, /has an empty part/, `${process.host}/team//x`)
    await refused(422, /the tag cannot begin with a dash/, image('-v1'))
    await refused(422, /contains a user name or password/, `user:canary@${process.host}/team/image`)
    await refused(422, /connection refused .* Check the host name and the port/, '127.0.0.1:9/team/image')
    await refused(503, /connection refused/, await leftRegistry())
    await using strict = await startService({ plainHttp: false })
    await credentials(registryUser.password, strict)
    await refused(422, /no allowed address/, image('v1'), strict)
    await refused(422, /no allowed address Use a registry with a public address$/, '169.254.169.254/a/b', strict)
    for (const [host, setting] of [
      [process.host, 'registries.allowLoopback'],
      ['10.1.2.3', 'registries.allowPrivate'],
    ]) {
      const reference = `${host}/team/image:v1`
      await refused(422, new RegExp(`address Set ${setting} to true in config.json of the server`), reference, strict)
      const { devToken: token } = strict
      const { status, body } = await strict.call('POST', `${base}/vms`, { token, body: { image: reference } })
      assert.deepEqual(
        [status, body.hint],
        [422, `Ask an administrator to set ${setting} in config.json of the server`],
      )
    }
    assert.deepEqual(service.services.collections.vms.list(), [])
    assert.deepEqual(service.services.collections.vmSecrets.list(), [])
    assert.doesNotMatch((await service.call('GET', `${base}/events`)).text, /canary/)
    assert.ok(!service.logLines.some((line) => line.includes('canary')))
  })

  it('a deployment from a registry has an estimate with the same refusals, also if the registry does not respond', async () => {
    const estimate = (name: string) => service.call('POST', `${base}/vms/estimate`, { body: { image: name } })
    const { status, body } = await estimate(image('tart'))
    assert.deepEqual([status, body.architecture, body.os, body.size], [200, 'arm64', 'macos', '2M'])
    assert.match(body.spaceUsed, /^\d/)
    assert.deepEqual([(await estimate(image('none'))).status, (await estimate(image('intel'))).status], [404, 422])
    assert.equal((await estimate('127.0.0.1:9/team/image')).status, 422)
    const name = await leftRegistry()
    const away = await estimate(name)
    assert.deepEqual([away.status, away.body.size], [200, undefined])
    assert.match(away.body.imageProblem, /connection refused/)
    assert.match(away.body.message, new RegExp(`Image not checked: Image ${name}`))
  })

  it('a deployment from a registry is pinned to a manifest, and only its node gets the credentials', async () => {
    await using _ = startScheduler(service)
    const { digest } = await publish(small.digest, 'v1')
    const pinned = `${process.host}/team/image@${digest}`
    const empty = await startNode(service, { name: 'empty', report: { architecture: 'arm64', cpu: 64 } })
    const cache = [{ key: small.digest, state: 'Ready', pulled: { reference: pinned, sizeBytes: 2 ** 30 } }] as const
    const full = await startNode(service, {
      name: 'full',
      report: { architecture: 'arm64', images: [pinned], cache: [...cache] },
    })
    const config = { name: 'from-registry', image: image('v1'), cpu: 1 }
    assert.equal((await service.call('POST', `${base}/vmconfigs`, { body: config })).status, 201)
    const answer = await service.call('POST', `${base}/vms`, { body: { vmConfig: 'from-registry', name: 'one' } })
    assert.equal(answer.status, 201, answer.text)
    assert.deepEqual([answer.body.image, answer.body.node], [image('v1'), 'full'])
    const [told] = full.told.flatMap((message) => (message.type === 'VM' ? [message.vm] : []))
    assert.deepEqual(told?.image, { name: image('v1'), reference: pinned })
    const login = (token: string) => service.call('GET', `/api/v1/agent/vms/${answer.body.uid}/registry`, { token })
    const given = await login(full.token)
    assert.deepEqual([given.status, given.body.credentials], [200, registryUser])
    assert.equal((await login(empty.token)).status, 404)
    const commit = await service.call('POST', `${base}/vms/one/commit`)
    assert.deepEqual([commit.status, /svc3 vm push one .*svc3 vm save one/.test(commit.body.hint)], [422, true])
    const shown = await service.call('GET', `${base}/cache/images`)
    assert.deepEqual(shown.body.items[0].name, pinned)
    const at = `${base}/cache/images/${encodeURIComponent(pinned)}`
    const removed = await service.call('POST', `${at}/remove`, { body: { all: true } })
    assert.deepEqual(removed.body.items[0].message, 'VMs on the node use the image: svc-default/one')
  })
})

describe('the image cache', () => {
  it('the image cache has images of registries by their tags, which are resolved when they are added', async () => {
    await using service = await startService({ settings: { registries: { allowLoopback: true } } })
    await credentials(registryUser.password, service)
    const node = await startNode(service, { name: 'arm', report: { architecture: 'arm64', cache: [] } })
    const stranger = await startNode(service, { name: 'other', report: { architecture: 'arm64', cache: [] } })
    const at = (name: string) => `${base}/cache/images/${encodeURIComponent(name)}`
    const add = (name: string) => service.call('POST', `${at(name)}/add`, { body: { nodes: ['arm'] } })
    const shown = async (name: string) => (await service.call('GET', at(name))).body.nodes
    const listed = async () =>
      (await service.call('GET', `${base}/cache/images`)).body.items.map((item: { name: string }) => item.name)
    const last = () => node.told.flatMap((message) => (message.type === 'CACHE' ? [message.cache] : [])).at(-1)
    const verdict = async (name: string) => {
      const { status, body } = await add(name)
      return [status, body.items[0].result, body.items[0].message]
    }
    for (const [name, status] of [
      ['team//x', 422],
      ['team/image:none', 404],
    ] as const)
      assert.equal((await add(`${process.host}/${name}`)).status, status, name)

    assert.equal((await verdict(image('intel')))[1], 'WrongArchitecture')

    const { digest } = await publish(small.digest, 'cached')
    const [name, pinned] = [image('cached'), `${process.host}/team/image@${digest}`]
    assert.deepEqual(await verdict(name), [207, 'NotPossible', 'The agent is too old; update it'])
    await node.report({ takesReferences: true })
    assert.deepEqual(await verdict(name), [207, 'Accepted', 'Fetching'])
    assert.deepEqual(await verdict(name), [207, 'Unchanged', 'Already being fetched'])
    await eventually(() => assert.deepEqual(last(), { images: [{ name, reference: pinned }], drops: [] }))
    const login = (token: string, of = pinned) =>
      service.call('GET', `/api/v1/agent/vms/${encodeURIComponent(of)}/registry`, { token })
    assert.deepEqual((await login(node.token)).body.credentials, registryUser)
    assert.equal((await login(stranger.token)).status, 404)
    assert.equal((await login(node.token, `mirror.example.com/team/image@${digest}`)).status, 404)

    await node.report({ cache: [{ key: `pull:${pinned}`, state: 'Fetching', percent: 35 }] })
    const copy = { node: 'arm', pinned: true }
    assert.deepEqual(await shown(name), [{ ...copy, state: 'Fetching', progress: { percent: 35 } }])
    const pulled = { reference: pinned, names: [name, image('also')], sizeBytes: 2 ** 30 }
    const ready = { key: small.digest, state: 'Ready', bytes: 800, pulled } as const
    await node.report({ cache: [ready] })
    const there = [{ ...copy, state: 'Ready', bytes: 800, spaceUsed: '800' }]
    assert.deepEqual(await shown(name), there)
    for (const other of [image('also'), pinned]) assert.deepEqual(await shown(other), [{ ...there[0], pinned: false }])
    assert.deepEqual(await listed(), [image('also'), name])

    // The tag moves: the copy of its old content is no copy of it.
    const moved = await publish(await putManifest(small.store, { ...small.manifest, os: 'linux' }), 'cached')
    assert.notEqual(moved.digest, digest)
    assert.deepEqual(await verdict(name), [207, 'Accepted', 'Fetching'])
    assert.deepEqual(await shown(name), [{ ...copy, state: 'Pending' }])
    await node.report({
      cache: [
        { key: `pull:${process.host}/team/image@${moved.digest}`, state: 'Failed', problem: 'no network' },
        ready,
      ],
    })
    assert.deepEqual(await shown(name), [{ ...copy, state: 'Failed', errorMessage: 'no network' }])

    const remove = (of: string) => service.call('POST', `${at(of)}/remove`, { body: { all: true } })
    assert.equal((await remove(name)).body.items[0].result, 'Accepted')
    await eventually(() => assert.deepEqual(last(), { images: [], drops: [] }))
    assert.equal((await remove(image('also'))).body.items[0].result, 'Accepted')
    await eventually(() => assert.deepEqual(last(), { images: [], drops: [small.digest] }))
    await node.report({ cache: [] })
    assert.equal((await service.call('GET', at(name))).status, 404)
  })
})

describe('a pull from a registry', () => {
  const settled = (name: string): Promise<void> =>
    eventually(async () => {
      const { state } = (await service.call('GET', `${base}/images/${name}`)).body
      assert.notEqual(state, 'Updating')
    })

  it('a pull from a registry stores images of svc3 and tart, byte for byte', async () => {
    assert.equal((await pull(image('v1'), { name: 'ours' })).status, 202)
    await settled('ours')
    const { body: ours } = await service.call('GET', `${base}/images/ours`)
    assert.deepEqual([ours.state, ours.checksum, ours.source, ours.type], ['Ready', small.digest, image('v1'), 'arm64'])
    assert.ok(await hasAllContent(service.services.content, small.digest))
    const begun = await pull(image('tart'))
    assert.deepEqual([begun.status, begun.body.name], [202, 'image'])
    await settled('image')
    const { content } = service.services
    const { checksum } = (await service.call('GET', `${base}/images/image`)).body
    const file = path.join(folder, 'tart.raw')
    await restoreDisk(await readManifest(content, checksum), content, file)
    assert.ok((await fs.readFile(file)).equals(tartDisk))
    const { body: intel } = await pull(image('intel'), { name: 'intel' })
    assert.equal(intel.type, 'amd64')
    await settled('intel')
  })

  it('a pull from an unreachable registry shows the next try, and continues when the registry is back', async () => {
    const away = await startBadRegistry()
    const other = await makeSmallImage(path.join(folder, 'away'), 2)
    try {
      const target = openRegistry({
        server: away.server,
        allowInsecure: true,
        policy: { allowPrivate: false, allowLoopback: true },
      })
      const repository = target.repository('team/away')
      await copy({ target: imageSource(other.store), reference: other.digest }, { target: repository, reference: 'v1' })
      target.close()
      await credentials('any', service, away.server)
      const chunk = other.manifest.layers[0]?.chunks[0]?.digest ?? ''
      away.bend = ({ path: at }, response) => at.endsWith(chunk) && reply(response, 503)
      const name = `127.0.0.1:${away.port}/team/away:v1`
      assert.equal((await pull(name, { name: 'away' })).status, 202)
      const shown = async () => (await service.call('GET', `${base}/images/away`)).body
      const words = /^waiting: Fetching from team\/away: .* failed \(503\); next try at \d\d:\d\d:\d\d UTC$/
      await eventually(async () => assert.match((await shown()).errorMessage ?? '', words))
      assert.equal((await shown()).state, 'Updating')
      away.bend = () => false
      await settled('away')
      const { state, errorMessage } = await shown()
      assert.deepEqual([state, errorMessage], ['Ready', undefined])
    } finally {
      await away.close()
    }
  })

  it('a pull from a registry is refused immediately, like a deployment', async () => {
    assert.equal((await pull(image('none'))).status, 404)
    assert.equal((await pull(image('v1'), { name: 'ours' })).status, 409)
    assert.equal((await pull('nowhere.invalid/image')).status, 422)
  })

  it('a pull from a registry is Failed with the reason if a byte is wrong, and cannot be deployed', async () => {
    const other = await makeSmallImage(path.join(folder, 'other'), 2)
    const target = connected.repository('team/broken')
    await copy({ target: imageSource(other.store), reference: other.digest }, { target, reference: 'v1' })
    const [{ digest = '' } = {}] = other.manifest.layers[0]?.chunks ?? []
    const hex = digest.slice('sha256:'.length)
    const file = path.join(folder, 'registry/data/docker/registry/v2/blobs/sha256', hex.slice(0, 2), hex, 'data')
    await fs.writeFile(
      file,
      (await fs.readFile(file)).map((byte) => byte ^ 1),
    )
    await pull(`${process.host}/team/broken:v1`)
    await settled('broken')
    const { body } = await service.call('GET', `${base}/images/broken`)
    assert.deepEqual([body.state, body.checksum], ['Failed', undefined])
    assert.match(body.errorMessage, /fetch it again/)
    assert.ok(!(await service.services.content.has(digest)))
    assert.equal((await deploy('broken')).status, 409)
  })

  it('a pull from a remote that is a repository offers its tags as images', async () => {
    const open = await startRegistry({ folder: path.join(folder, 'open') })
    const registry = openRegistry({
      server: open.server,
      allowInsecure: true,
      policy: { allowPrivate: false, allowLoopback: true },
    })
    const target = registry.repository('public/macos')
    await copy({ target: imageSource(small.store), reference: small.digest }, { target, reference: 'sonoma' })
    registry.close()
    const url = `oci://${open.host}/public/macos`
    await using other = await startService({ settings: { remotes: [{ name: 'hub', url, allowInsecure: true }] } })
    const loop = pullImages(other.services, createPulls(other.services))
    try {
      const { body } = await other.call('GET', `${base}/remoteimages`)
      assert.deepEqual(
        body.items.map(({ name, type }: Record<string, string>) => [name, type]),
        [['sonoma', 'arm64']],
      )
      assert.equal((await other.call('POST', `${base}/remoteimages/hub%2Fsonoma/pull`, { body: {} })).status, 202)
      await eventually(async () => {
        const { body: shown } = await other.call('GET', `${base}/images/sonoma`)
        assert.deepEqual([shown.state, shown.checksum], ['Ready', small.digest], JSON.stringify(shown))
      })
    } finally {
      await loop.stop()
      await open.kill()
    }
  })
})
