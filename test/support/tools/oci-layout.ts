// A folder in OCI image layout, as skopeo and others write and read it. Only digests become paths.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { writeAll } from '../../../src/images/content/sparse-write.ts'
import { writeWhole } from '../../../src/images/content/temporary-files.ts'
import { digestPattern } from '../../../src/images/format/format.ts'
import { RegistryError } from '../../../src/oci/artifact/errors.ts'
import {
  blobsOf,
  type Descriptor,
  maxOciManifestBytes,
  parseIndex,
  parseOciManifest,
  type RawManifest,
  rawManifest,
} from '../../../src/oci/artifact/oci-manifest.ts'
import type { ArtifactSource, Destination, OpenOptions } from '../../../src/oci/artifact/target.ts'
import { ifAbsent, readFileIfPresent, writeFileAtomically } from '../../../src/platform/files.ts'

const refName = 'org.opencontainers.image.ref.name'
const pieceBytes = 2 ** 20

export function openLayout(folder: string): ArtifactSource & Destination {
  const fileOf = (digest: string) => {
    if (!digestPattern.test(digest)) throw new TypeError(`"${digest.slice(0, 80)}" is not a digest`)
    return path.join(folder, 'blobs', 'sha256', digest.slice('sha256:'.length))
  }
  const has = async ({ digest, size }: Descriptor) =>
    await fs.lstat(fileOf(digest)).then((stat) => stat.isFile() && stat.size === size, ifAbsent(false))

  async function* open({ digest, size }: Descriptor, { offset = 0, signal, isUnchecked = false }: OpenOptions) {
    const hasher = offset === 0 && !isUnchecked ? createHash('sha256') : undefined
    let bytes = offset
    const file = createReadStream(fileOf(digest), {
      start: offset,
      highWaterMark: pieceBytes,
      ...(signal && { signal }),
    })
    for await (const piece of file as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > size) break
      hasher?.update(piece)
      yield piece
    }
    const isRight = bytes === size && (!hasher || `sha256:${hasher.digest('hex')}` === digest)
    if (!isRight) throw new RegistryError('invalid', `what ${folder} has as ${digest} is something else`)
  }

  async function read(blob: Descriptor, signal?: AbortSignal): Promise<Buffer> {
    const pieces: Buffer[] = []
    for await (const piece of open(blob, { signal })) pieces.push(piece)
    return Buffer.concat(pieces)
  }

  const entries = async (): Promise<readonly Descriptor[]> => {
    const text = await readFileIfPresent(path.join(folder, 'index.json'))
    return text === undefined ? [] : parseIndex({ bytes: Buffer.from(text) }).map(({ descriptor }) => descriptor)
  }

  return {
    name: folder,
    async resolve(reference, signal) {
      const all = await entries()
      const found = all.find((entry) => entry.digest === reference || entry.annotations?.[refName] === reference)
      if (!found) throw new RegistryError('notFound', `${folder} has no image "${reference}"`)
      if (found.size > maxOciManifestBytes)
        throw new RegistryError('invalid', `${reference} has a manifest of ${found.size} bytes`)
      return rawManifest(found.mediaType, await read(found, signal))
    },
    open: (blob, options = {}) => open(blob, options),
    read,
    async plan(manifest) {
      const blobs = blobsOf(parseOciManifest(manifest))
      await fs.mkdir(path.join(folder, 'blobs', 'sha256'), { recursive: true })
      return blobs
    },
    has,
    async put(blob, content, { signal, onPosition } = {}) {
      await writeWhole(fileOf(blob.digest), async (file) => {
        let bytes = 0
        for await (const piece of checked(blob, content.open(0))) {
          signal?.throwIfAborted()
          await writeAll(file, piece, bytes)
          bytes += piece.length
          onPosition?.(bytes)
        }
      })
      return true
    },
    async finish(manifest, reference) {
      await writeWhole(fileOf(manifest.digest), (file) => writeAll(file, manifest.bytes, 0))
      const others = (await entries()).filter((entry) =>
        reference === undefined ? entry.digest !== manifest.digest : entry.annotations?.[refName] !== reference,
      )
      const index = { schemaVersion: 2, manifests: [...others, entryOf(manifest, reference)] }
      await writeFileAtomically(path.join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}', { mode: 0o644 })
      await writeFileAtomically(path.join(folder, 'index.json'), JSON.stringify(index), { mode: 0o644 })
      return manifest.digest
    },
  }
}

const entryOf = ({ mediaType, digest, bytes }: RawManifest, reference: string | undefined): Descriptor => ({
  mediaType,
  digest,
  size: bytes.length,
  ...(reference !== undefined && { annotations: { [refName]: reference } }),
})

/** Fails before the file is in place if it has another digest or size. */
async function* checked({ digest, size }: Descriptor, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const hasher = createHash('sha256')
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.length
    if (bytes > size) break
    hasher.update(piece)
    yield piece
  }
  if (bytes !== size || `sha256:${hasher.digest('hex')}` !== digest)
    throw new RegistryError('invalid', `what came as ${digest} is something else`)
}
