// kill -9 of the service while it pulls an image from a registry: it goes on when it is back, with what has come.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { copy } from '../../src/oci/copy.ts'
import { imageSource } from '../../src/oci/image-target.ts'
import { openRegistry } from '../../src/oci/registry.ts'
import { type DevServer, filesIn, makeFolder, startDev } from '../support/dev-server.ts'
import { eventually } from '../support/eventually.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/registry.ts'
import { makeSmallImage, type SmallImage } from '../support/small-image.ts'

const base = '/api/v1/namespaces/svc-default'
let folder: string
let data: string
let registry: RegistryProcess
let image: SmallImage
let dev: DevServer | undefined

const start = async (failpoint?: string): Promise<DevServer> => {
  dev = await startDev(data, {
    args: ['--driver', 'simulated', '--nodes', 'amd64=0,arm64=1'],
    env: failpoint === undefined ? {} : { SVC3_TEST: '1', SVC3_FAILPOINT: failpoint },
  })
  return dev
}

before(async () => {
  folder = await makeFolder()
  data = path.join(folder, 'dev')
  registry = await startRegistry({ folder: path.join(folder, 'registry'), hasPassword: true })
  image = await makeSmallImage(path.join(folder, 'image'), 40)
  const connected = openRegistry({
    server: registry.server,
    allowInsecure: true,
    credentials: registryUser,
    policy: { allowPrivate: false, allowLoopback: true },
  })
  const target = connected.repository('team/image')
  await copy({ target: imageSource(image.store), reference: image.digest }, { target, reference: 'v1' })
  connected.close()
})
after(async () => {
  await dev?.kill('SIGTERM')
  await registry.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

describe('a service that is killed in the middle of a pull', { timeout: 60_000 }, () => {
  it('goes on with it when it is back, and what has come is not fetched again', async () => {
    const first = await start('oci.copy.blob')
    const body = { server: registry.server, ...registryUser, allowInsecure: true }
    assert.equal((await first.call('POST', `${base}/secrets/registrycredentials/add`, body)).status, 201)
    const url = `${base}/remoteimages/${encodeURIComponent(`${registry.host}/team/image:v1`)}/pull`
    assert.equal((await first.call('POST', url, { name: 'mine' })).status, 202)
    assert.equal((await first.ended).signal, 'SIGKILL')
    const chunks = image.manifest.layers.flatMap((layer) => layer.chunks.map(({ digest }) => digest))
    // Files are in folders by their first two digits.
    const hexes = chunks.map((digest) => digest.slice('sha256:'.length + 2))
    const come = async (): Promise<Map<string, number>> => {
      const files = (await filesIn(data)).filter((file) => hexes.includes(path.basename(file)))
      const stats = files.map(
        async (file) => [path.basename(file), (await fs.stat(path.join(data, file))).ino] as const,
      )
      return new Map(await Promise.all(stats))
    }
    const before = await come()
    assert.ok(before.size > 0 && before.size <= chunks.length, `${before.size} of ${chunks.length}`)
    const second = await start()
    await eventually(async () => {
      const { body: shown } = await second.call('GET', `${base}/images/mine`)
      assert.deepEqual([shown.state, shown.checksum], ['Ready', image.digest], JSON.stringify(shown))
    })
    const after = await come()
    assert.equal(after.size, chunks.length)
    for (const [name, file] of before) assert.equal(after.get(name), file, 'it is the same file')
  })
})
