// Against Debian's docker-registry, with a password and with TLS of an authority of our own, killed in the middle; and
// with skopeo as another client, both ways.

import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type RegistryProcess, registryUser, startRegistry } from '../../../test/support/processes/registry.ts'
import { makeSmallImage, type SmallImage } from '../../../test/support/rigs/small-image.ts'
import { makePair, type TestPair } from '../../../test/support/tools/certificates.ts'
import { openLayout } from '../../../test/support/tools/oci-layout.ts'
import { openRemoteImage } from '../../../test/support/tools/remote-image.ts'
import { openContentFolder } from '../../images/content/store.ts'
import { restoreDisk } from '../../images/pack/restore.ts'
import { exec } from '../../platform/exec.ts'
import { RegistryError } from '../artifact/errors.ts'
import { imageDestination, imageSource } from '../artifact/image-target.ts'
import { type CopyOptions, copy } from '../copy.ts'
import type { RegistryOptions } from './exchange.ts'
import { openRegistry, type Registry, type RepositoryOptions } from './registry.ts'

let folder: string
let authority: TestPair
let image: SmallImage
let secure: RegistryProcess
const opened: Registry[] = []

before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-registry-'))
  authority = await makePair({ name: 'an authority', isAuthority: true })
  const tls = await makePair({ issuer: authority })
  image = await makeSmallImage(path.join(folder, 'image'), 40)
  secure = await startRegistry({ folder: path.join(folder, 'secure'), hasPassword: true, tls })
})
after(async () => {
  for (const registry of opened) registry.close()
  await secure?.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

function connect(options: Partial<RegistryOptions> = {}): Registry {
  const registry = openRegistry({
    server: secure.server,
    credentials: registryUser,
    ca: authority.cert,
    policy: { allowLoopback: true, allowPrivate: false },
    // Until it is back, however long it takes to start.
    retry: { attempts: 100, firstDelayMs: 100, maxDelayMs: 1_000, maxRetryAfterMs: 1_000 },
    ...options,
  })
  opened.push(registry)
  return registry
}

const push = (repository: string, tag: string, options: CopyOptions = {}, more: RepositoryOptions = {}) =>
  copy(
    { target: imageSource(image.store), reference: image.digest },
    { target: connect().repository(repository, more), reference: tag },
    options,
  )

const skopeo = (...args: string[]) =>
  exec('skopeo', args, { timeoutMs: 120_000, env: { ...process.env, HOME: folder } as Record<string, string> })
const creds = `${registryUser.username}:${registryUser.password}`
const trust = async () => {
  const certs = path.join(folder, 'certs')
  await fs.mkdir(certs, { recursive: true })
  await fs.writeFile(path.join(certs, 'ca.crt'), authority.cert)
  return certs
}

describe("Debian's docker-registry", () => {
  it("Debian's docker-registry takes an image, gives it back byte for byte, and takes nothing twice", async () => {
    const first = await push('team/nested/image', 'v1')
    assert.equal(first.progress.bytesSkipped, 0)
    const again = await push('team/nested/image', 'v2')
    assert.equal(again.digest, first.digest)
    assert.equal(again.progress.bytesSkipped, again.progress.bytesTotal)
    const mounted = await push('team/other', 'v1', {}, { mountFrom: 'team/nested/image' })
    assert.equal(mounted.progress.bytesSkipped, mounted.progress.bytesTotal)

    const store = await openContentFolder(path.join(folder, 'pulled'))
    const source = connect().repository('team/other')
    const pulled = await copy({ target: source, reference: first.digest }, { target: imageDestination(store) })
    assert.equal(pulled.digest, image.digest)
    const remote = await openRemoteImage(source, 'v1', { limits: { architecture: 'arm64' } })
    assert.deepEqual([remote.digest, remote.imageDigest], [first.digest, image.digest])
    const disk = path.join(folder, 'pulled.raw')
    await restoreDisk(remote.image, remote.content, disk)
    assert.ok((await fs.readFile(disk)).equals(image.disk))
  })

  it("Debian's docker-registry requires the password, and needs a trusted CA", async () => {
    const look = (options: Partial<RegistryOptions>) =>
      connect(options)
        .repository('team/other')
        .resolve('v1')
        .then(
          () => assert.fail('it should be refused'),
          (error: unknown) => (error instanceof RegistryError ? error : assert.fail(String(error))),
        )
    const wrong = await look({ credentials: { username: 'ci', password: 'canary-wrong' } })
    assert.equal(wrong.fault, 'unauthorized')
    assert.doesNotMatch(wrong.message, /canary/)
    assert.equal((await look({ credentials: undefined })).fault, 'unauthorized')
    const stranger = await look({ ca: undefined })
    assert.equal(stranger.fault, 'untrusted')
    assert.match(stranger.message, /certificate is not trusted/)
    const { host } = new URL(secure.server)
    assert.ok(
      stranger.hint.endsWith(
        `registries.ca in config.json of the server: {"registries": {"ca": {"${host}": "/PATH/TO/CA.pem"}}}`,
      ),
      stranger.hint,
    )
    const plain = await startRegistry({ folder: path.join(folder, 'plain') })
    try {
      const clear = await look({ server: plain.server.replace('http:', 'https:') })
      assert.equal(clear.fault, 'plain')
      assert.match(
        clear.message,
        new RegExp(`does not use TLS.*svc3 regcred add http://${plain.host} --allow-insecure`),
      )
    } finally {
      await plain.kill()
    }
    await connect().ping({ repository: 'team/other' })
  })

  it("Debian's docker-registry is killed during a push and restarted: only the rest is sent", async () => {
    let killed: Promise<void> | undefined
    let before = 0
    const { progress } = await push('team/killed', 'v1', {
      concurrency: 2,
      onProgress: ({ bytesDone, blobsDone }) => {
        if (killed || blobsDone < 2 || bytesDone > 35 * 2 ** 20) return
        before = blobsDone
        killed = secure.kill().then(() => secure.start())
      },
    })
    await killed
    assert.ok(before >= 2 && progress.blobsDone === progress.blobsTotal)
    const again = await push('team/killed', 'v1')
    assert.equal(again.progress.bytesSkipped, again.progress.bytesTotal)
  })

  it("Debian's docker-registry keeps what an aborted push has sent: the next one sends the rest", async () => {
    const stop = new AbortController()
    let doneBytes = 0
    await assert.rejects(
      push('team/given-up', 'v1', {
        concurrency: 1,
        signal: stop.signal,
        onProgress: (progress) => {
          if (progress.blobsDone < 3) return
          doneBytes = progress.bytesDone
          stop.abort(new Error('given up'))
        },
      }),
      /given up/,
    )
    await assert.rejects(connect().repository('team/given-up').resolve('v1'), /does not have it/)
    const { progress } = await push('team/given-up', 'v1')
    assert.ok(progress.bytesSkipped >= doneBytes && progress.bytesSkipped < progress.bytesTotal)
  })

  it("Debian's docker-registry resumes an upload in pieces after it was killed, or starts that blob over", async () => {
    let killed: Promise<void> | undefined
    let reached = 0
    await push(
      'team/pieces',
      'v1',
      {
        concurrency: 1,
        onProgress: ({ bytesDone }) => {
          reached = Math.max(reached, bytesDone)
          if (bytesDone > 10 * 2 ** 20) killed ??= secure.kill().then(() => secure.start())
        },
      },
      { pieceBytes: 2 ** 20 },
    )
    await killed
    assert.ok(killed && reached > 10 * 2 ** 20)
    const store = await openContentFolder(path.join(folder, 'pieces'))
    const source = connect().repository('team/pieces')
    assert.equal(
      (await copy({ target: source, reference: 'v1' }, { target: imageDestination(store) })).digest,
      image.digest,
    )
  })
})

describe('skopeo', () => {
  it('skopeo inspects and copies a pushed image, and svc3 pulls the copy byte for byte', async () => {
    const { digest } = await push('team/ours', 'v1')
    const certs = await trust()
    const { stdout } = await skopeo(
      'inspect',
      '--cert-dir',
      certs,
      '--creds',
      creds,
      `docker://${secure.host}/team/ours:v1`,
    )
    const seen = JSON.parse(stdout) as { Digest: string; Architecture: string; Layers: string[] }
    assert.equal(seen.Digest, digest)
    assert.equal(seen.Architecture, 'arm64')
    assert.equal(seen.Layers[0], image.digest)
    const tls = ['--src-cert-dir', certs, '--src-creds', creds]
    const layout = path.join(folder, 'skopeo-layout')
    await skopeo('copy', ...tls, `docker://${secure.host}/team/ours:v1`, `oci:${layout}:v1`)
    await skopeo(
      'copy', ...tls, '--dest-cert-dir', certs, '--dest-creds', creds,
      `docker://${secure.host}/team/ours:v1`, `docker://${secure.host}/team/theirs:v1`,
    ) // biome-ignore format: a command line
    for (const [name, target] of Object.entries({
      layout: openLayout(layout),
      registry: connect().repository('team/theirs'),
    })) {
      const store = await openContentFolder(path.join(folder, `from-skopeo-${name}`))
      const pulled = await copy({ target, reference: 'v1' }, { target: imageDestination(store) })
      assert.equal(pulled.digest, image.digest)
    }
  })

  it('skopeo pushes from a layout folder that we wrote, and we pull that', async () => {
    const layout = path.join(folder, 'our-layout')
    const from = { target: imageSource(image.store), reference: image.digest }
    const { digest } = await copy(from, { target: openLayout(layout), reference: 'v1' })
    const certs = await trust()
    await skopeo(
      'copy',
      '--dest-cert-dir',
      certs,
      '--dest-creds',
      creds,
      `oci:${layout}:v1`,
      `docker://${secure.host}/team/by-skopeo:v1`,
    )
    const remote = await openRemoteImage(connect().repository('team/by-skopeo'), 'v1')
    assert.deepEqual([remote.digest, remote.imageDigest], [digest, image.digest])
    const disk = path.join(folder, 'by-skopeo.raw')
    await restoreDisk(remote.image, remote.content, disk)
    assert.ok((await fs.readFile(disk)).equals(image.disk))
  })
})
