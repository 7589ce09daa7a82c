// Many pushes or pulls at once in a process of their own, whose memory is measured:
// node registry-load.ts push|take|fill SERVER FOLDER COUNT MEBIBYTES; prints the most memory that it had, in kilobytes.

import { randomFillSync } from 'node:crypto'
import path from 'node:path'
import { fillContent } from '../../src/agent/images/content.ts'
import { openContentFolder } from '../../src/images/content/store.ts'
import { blockBytes, type Manifest } from '../../src/images/format/format.ts'
import { packLayer } from '../../src/images/pack/chunks.ts'
import { putManifest } from '../../src/images/pack/stored-manifests.ts'
import { imageDestination, imageSource } from '../../src/oci/artifact/image-target.ts'
import { copy } from '../../src/oci/copy.ts'
import { forwardTo } from '../../src/oci/forward.ts'
import { openRegistry } from '../../src/oci/registry/registry.ts'
import { openRemoteImage } from '../support/tools/remote-image.ts'

const [mode = '', server = '', folder = '', count = '', mebibytes = ''] = process.argv.slice(2)
const bytes = Number(mebibytes) * 2 ** 20
const registry = openRegistry({ server, allowInsecure: true, policy: { allowLoopback: true, allowPrivate: false } })
const store = await openContentFolder(path.join(folder, 'content'))

/** The middle half of every block is random, the rest is zero: no two are the same, and zstd halves them. */
const disk = {
  async read(target: Buffer, _at: number): Promise<void> {
    target.fill(0)
    for (let at = blockBytes / 4; at < target.length; at += blockBytes) randomFillSync(target, at, blockBytes / 2)
  },
}

async function push(index: number): Promise<void> {
  const target = registry.repository(`load/image-${index}`)
  const forwarding = forwardTo(target, store)
  const layer = await packLayer([{ offset: 0, length: bytes, at: 0 }], disk, forwarding.store)
  await forwarding.idle()
  const manifest: Manifest = {
    formatVersion: 1,
    architecture: 'arm64',
    virtualSizeBytes: bytes,
    boot: { kind: 'firmware' },
    layers: [layer],
  }
  const from = { target: imageSource(store), reference: await putManifest(store, manifest) }
  await copy(from, { target, reference: 'v1' }, { there: forwarding.there })
}

/** As servers do. */
async function take(index: number): Promise<void> {
  const target = registry.repository(`load/image-${index}`)
  await copy({ target, reference: 'v1' }, { target: imageDestination(store) })
}

/** As agents do. */
async function fill(index: number): Promise<void> {
  const { imageDigest, content } = await openRemoteImage(registry.repository(`load/image-${index}`), 'v1')
  await fillContent(folder, imageDigest, {
    store,
    read: content.read,
    open: () => Promise.reject(new Error('all content is in the registry')),
    signal: new AbortController().signal,
    progress: () => undefined,
  })
}

const work = { push, take, fill }[mode]
if (!work) throw new Error(`"${mode}" is no work`)
await Promise.all(Array.from({ length: Number(count) }, (_, index) => work(index)))
process.stdout.write(`${process.resourceUsage().maxRSS}\n`)
process.exit(0)
