// Notes about unpacked layers of tart images, so that an interrupted pull, or another image with the same layer, does
// not fetch it again. A note is written when the chunks of the layer are verified and stored.
import { hash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ContentStore } from '../../images/content/content.ts'
import { type Chunk, formatVersion, type Manifest } from '../../images/format/format.ts'
import { checkManifest } from '../../images/format/manifest.ts'
import { ifAbsent, readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import { defaultParallel, forEachParallel } from '../../platform/parallel.ts'

/** A layer at an offset of the disk, which its chunks depend on. */
interface NotedLayer {
  readonly digest: string
  readonly rawDigest: string | undefined
  readonly offset: number
  readonly rawBytes: number
}

/** Long enough for the next version of an image. The chunks may be deleted much earlier. */
const keptMs = 30 * 24 * 60 * 60_000

export async function openLayerNotes(store: ContentStore) {
  const folder = path.join(store.folder, 'unpacked')
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  await removeOld(folder)
  const fileOf = ({ digest, rawDigest = '', offset, rawBytes }: NotedLayer): string =>
    path.join(folder, `${hash('sha256', `1 ${digest} ${rawDigest} ${offset} ${rawBytes}`)}.json`)

  return {
    /** Returns undefined also if some chunks are missing. The others are touched, so that the collector keeps them. */
    async find(layer: NotedLayer): Promise<readonly Chunk[] | undefined> {
      const file = fileOf(layer)
      const chunks = chunksIn(await readFileIfPresent(file), layer)
      if (!chunks) return undefined
      let isWhole = true
      await forEachParallel(chunks, 4 * defaultParallel, async ({ digest, storedBytes }) => {
        if (!isWhole) return
        // Not `&&=`, which would overwrite what another call found in the meantime.
        if (!(await store.touch(digest)) || (await store.size(digest)) !== storedBytes) isWhole = false
      })
      if (!isWhole) return undefined
      const now = new Date()
      await fs.utimes(file, now, now).catch(ifAbsent(undefined))
      return chunks
    },
    /** The chunks MUST be in the store. */
    keep: (layer: NotedLayer, chunks: readonly Chunk[]): Promise<void> =>
      writeFileAtomically(fileOf(layer), JSON.stringify(chunks)),
  }
}

async function removeOld(folder: string): Promise<void> {
  const beforeMs = Date.now() - keptMs
  for (const name of await fs.readdir(folder)) {
    const stat = await fs.stat(path.join(folder, name)).catch(ifAbsent(undefined))
    if (stat && stat.mtimeMs < beforeMs) await fs.rm(path.join(folder, name), { force: true })
  }
}

/** An invalid note is ignored. */
function chunksIn(text: string | undefined, { offset, rawBytes }: NotedLayer): readonly Chunk[] | undefined {
  if (text === undefined) return undefined
  try {
    const chunks = JSON.parse(text) as readonly Chunk[]
    const manifest: Manifest = {
      formatVersion,
      architecture: 'arm64',
      virtualSizeBytes: offset + rawBytes,
      boot: { kind: 'firmware' },
      layers: [{ chunks }],
    }
    checkManifest(manifest)
    return chunks.every(({ extents: [first] }) => first !== undefined && first[0] >= offset) ? chunks : undefined
  } catch {
    return undefined
  }
}
