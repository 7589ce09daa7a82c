// Which format an image in a registry is in, and what is said of one that svc3 cannot read.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ociConfigType, ociManifestType, rawManifest } from './artifact/oci-manifest.ts'
import type { ArtifactSource } from './artifact/target.ts'
import { inspectImage } from './inspect.ts'

const blob = (mediaType: string) => ({ mediaType, digest: `sha256:${'a'.repeat(64)}`, size: 1 })

/** The refusal of an image with one layer. */
function refusalOf(layer: string, { place = 'harbor.example.com/ci/sonoma', config = ociConfigType, more = {} } = {}) {
  const json = { schemaVersion: 2, mediaType: ociManifestType, config: blob(config), layers: [blob(layer)], ...more }
  const source = {
    name: place,
    resolve: async () => rawManifest(ociManifestType, Buffer.from(JSON.stringify(json))),
    read: async () => Buffer.from('{}'),
  } as unknown as ArtifactSource
  return inspectImage(source, 'latest').then(
    () => assert.fail('it was read'),
    (error: Error) => error.message,
  )
}

it('an image of Orka is named as such, by its media types or the repository of the vendor', async () => {
  const layer = 'application/vnd.oci.image.layer.v1.tar'
  const tags = [
    refusalOf('application/vnd.macstadium.orka-engine.disk.layer.v1+lz4'),
    refusalOf('application/vnd.macstadium.orka-si.image.layer.v1.aar+lz4'),
    refusalOf(layer, { config: 'application/vnd.macstadium.orka-engine.image.config.v1+json' }),
    refusalOf(layer, { more: { artifactType: 'application/vnd.orka.vm.v1' } }),
    refusalOf(layer, { place: 'ghcr.io/macstadium/orka-images/sequoia' }),
  ]
  for (const message of await Promise.all(tags))
    assert.match(
      message,
      /^This is an image of Orka, whose format svc3 cannot read yet\. Use an image of tart, such as /,
    )
})

it('other images are not taken for those of Orka, and images of tart are read in any repository', async () => {
  const layer = 'application/vnd.oci.image.layer.v1.tar'
  for (const place of ['ghcr.io/team/orkan', 'ghcr.io/team/orka-images', 'ghcr.io/macstadium/tools'])
    assert.match(await refusalOf(layer, { place }), /it is not a VM image/)
  assert.match(await refusalOf('application/vnd.orkan.layer.v1'), /it is not a VM image/)
  const tart = 'application/vnd.cirruslabs.tart.disk.v2'
  assert.match(await refusalOf(tart, { place: 'ghcr.io/macstadium/orka-images/sequoia' }), /must have one config/)
})
