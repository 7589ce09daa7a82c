// A content folder read by its files alone, while a service may be using it: the disk of an image, and files that no image
// needs.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { referencedBy } from '../../../src/images/collect.ts'
import type { ContentSource } from '../../../src/images/content/content.ts'
import { restoreAttachment, restoreDisk } from '../../../src/images/pack/restore.ts'
import { readManifest } from '../../../src/images/pack/stored-manifests.ts'
import { ifAbsent } from '../../../src/platform/files.ts'

const blobs = (folder: string): string => path.join(folder, 'blobs', 'sha256')

export const contentIn = (folder: string): ContentSource => ({
  async read(digest) {
    const hex = digest.slice('sha256:'.length)
    const bytes = await fs.readFile(path.join(blobs(folder), hex.slice(0, 2), hex.slice(2)))
    assert.equal(createHash('sha256').update(bytes).digest('hex'), hex, 'content is what its name says')
    return bytes
  },
})

export interface Restored {
  readonly disk: Buffer
  readonly memory: Buffer | undefined
}

/** Restored from the folder, with every byte checked. */
export async function restoredFrom(folder: string, digest: string): Promise<Restored> {
  const source = contentIn(folder)
  const manifest = await readManifest(source, digest)
  const target = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-restored-'))
  try {
    await restoreDisk(manifest, source, path.join(target, 'disk'))
    const { memory } = manifest
    if (memory) await restoreAttachment(memory.state, source, path.join(target, 'memory'))
    return {
      disk: await fs.readFile(path.join(target, 'disk')),
      memory: memory && (await fs.readFile(path.join(target, 'memory'))),
    }
  } finally {
    await fs.rm(target, { recursive: true })
  }
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await fs.readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name))
}

/** Makes all content an hour old, so that the collector takes unreferenced files. */
export async function age(folder: string): Promise<void> {
  const then = new Date(Date.now() - 3_600_000)
  // A concurrent collector may take files of this list.
  for (const file of await filesOf(blobs(folder))) await fs.utimes(file, then, then).catch(ifAbsent(undefined))
}

/** Files that none of these images needs, and missing ones that they need. */
export async function strays(folder: string, images: readonly string[]): Promise<{ left: string[]; lost: string[] }> {
  const wanted = await referencedBy(images, contentIn(folder))
  const place = (digest: string): string => {
    const hex = digest.slice('sha256:'.length)
    return path.join(blobs(folder), hex.slice(0, 2), hex.slice(2))
  }
  const needed = new Set([...wanted].map(place))
  const there = new Set(await filesOf(folder))
  return {
    left: [...there].filter((file) => !needed.has(file)).map((file) => path.relative(folder, file)),
    lost: [...needed].filter((file) => !there.has(file)).map((file) => path.relative(folder, file)),
  }
}
