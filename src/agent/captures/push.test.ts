// Pushes from a node's store to Debian's docker-registry: what other clients read, and pushes in tart's format, which have the same
// disk and leave nothing on the node.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type RegistryProcess, startRegistry } from '../../../test/support/processes/registry.ts'
import { makeSmallImage, type SmallImage } from '../../../test/support/rigs/small-image.ts'
import { digestOf } from '../../images/format/manifest.ts'
import { packBytes } from '../../images/pack/attachments.ts'
import { restoreDisk } from '../../images/pack/restore.ts'
import { putManifest } from '../../images/pack/stored-manifests.ts'
import { parseOciManifest } from '../../oci/artifact/oci-manifest.ts'
import { openRegistry } from '../../oci/registry/registry.ts'
import { isTart, packTart } from '../../oci/tart/read.ts'
import { exec } from '../../platform/exec.ts'
import { type PushOptions, push } from './push.ts'

const signal = AbortSignal.timeout(120_000)

describe('push', () => {
  let folder: string
  let registry: RegistryProcess
  let small: SmallImage
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-push-tart-'))
    registry = await startRegistry({ folder: path.join(folder, 'registry') })
    small = await makeSmallImage(path.join(folder, 'image'))
  })
  after(async () => {
    await registry.kill()
    await fs.rm(folder, { recursive: true, force: true })
  })

  const login = () => ({
    server: registry.server,
    allowInsecure: true,
    policy: { allowPrivate: false, allowLoopback: true },
  })
  const target = (name: string) => ({
    reference: `${registry.host}/team/${name}:v1`,
    from: undefined,
    login: login(),
  })
  const options = (phases: string[], isAlone: boolean): PushOptions => ({
    store: small.store,
    format: 'tart',
    isAlone: async () => isAlone,
    sent: undefined,
    signal,
    progress: ({ phase = '' }) => phases.push(phase),
    confirm: async () => undefined,
  })
  const kept = async () => (await small.store.list({ limit: 1_000 })).items.length

  for (const format of ['svc3', 'tart'] as const)
    it(`a push in the format of ${format} has annotations for other clients, and is the same when it is repeated`, async () => {
      const { store, manifest, digest: plain } = small
      const machine = {
        config: await packBytes(Buffer.from('{"os":"darwin","arch":"arm64"}'), store),
        nvram: await packBytes(Buffer.from('nvram'), store),
      }
      const content = format === 'tart' ? await putManifest(store, { ...manifest, machine }) : plain
      const base = `sha256:${'b'.repeat(64)}`
      const from = { pinned: `${registry.host}/team/base@${base}`, name: `${registry.host}/team/base:v7` }
      const place = { ...target(`told-${format}`), from, createdAt: '2026-11-15T09:00:00Z' }
      const digest = await push(content, place, { ...options([], true), format })
      assert.equal(await push(content, place, { ...options([], true), format }), digest)
      const { stdout } = await exec('skopeo', ['inspect', '--raw', '--tls-verify=false', `docker://${place.reference}`])
      assert.equal(digestOf(stdout), digest)
      const { annotations, layers } = JSON.parse(stdout) as {
        annotations: Record<string, string>
        layers: { annotations: Record<string, string> }[]
      }
      const usual = Object.entries(annotations).filter(([key]) => key.startsWith('org.opencontainers.image.'))
      assert.deepEqual(Object.fromEntries(usual), {
        'org.opencontainers.image.created': '2026-11-15T09:00:00Z',
        'org.opencontainers.image.title': `told-${format}`,
        'org.opencontainers.image.version': 'v1',
        'org.opencontainers.image.source': `${registry.server}/team/base`,
        'org.opencontainers.image.base.name': from.name,
        'org.opencontainers.image.base.digest': base,
      })
      const titles = layers.map((layer) => layer.annotations['org.opencontainers.image.title'] ?? '')
      assert.ok(
        titles.every((title) => /^[a-z]+(\/\d+)?\.[a-z0-9]+$/.test(title)),
        titles.join(' '),
      )
      assert.equal(new Set(titles).size, layers.length)
    })

  it('a push in the format of tart equals a push by tart, and leaves nothing on the node', async () => {
    const { store, manifest, disk } = small
    const nvram = await packBytes(Buffer.from('nvram'), store)
    const config = await packBytes(Buffer.from('{"os":"darwin","arch":"arm64"}'), store)
    const content = await putManifest(store, { ...manifest, machine: { config, nvram } })
    const before = await kept()
    const phases: string[] = []
    const digest = await push(content, target('mac'), options(phases, true))
    assert.match(phases[0] ?? '', /^packing for tart, \d+ %$/)
    assert.equal(phases.at(-1), 'sending')
    assert.equal(await kept(), before, 'layers went when they were sent')
    const opened = openRegistry(login())
    const source = opened.repository('team/mac')
    const raw = await source.resolve('v1')
    assert.equal(raw.digest, digest)
    assert.ok(isTart(parseOciManifest(raw)))
    await restoreDisk(await packTart(source, raw, store), store, path.join(folder, 'disk'))
    assert.ok((await fs.readFile(path.join(folder, 'disk'))).equals(disk))
    opened.close()
    // Another capture that packs may use the same layers.
    await push(content, target('mac'), options([], false))
    assert.ok((await kept()) > before)
  })

  it("a push in the format of tart fails for a VM without a Mac's files, and sends nothing", async () => {
    await assert.rejects(push(small.digest, target('none'), options([], true)), /push it without --format tart/)
    const opened = openRegistry(login())
    await assert.rejects(opened.repository('team/none').resolve('v1'))
    opened.close()
  })
})
