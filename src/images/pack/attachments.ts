// Packs files that belong to a disk, such as kernel, initrd, memory and NVRAM, into chunks.
import fs from 'node:fs/promises'
import type { ContentStore } from '../content/content.ts'
import type { Attachment } from '../format/format.ts'
import { wholeBlocks } from '../format/manifest.ts'
import type { PackOptions } from './chunks.ts'
import { packDisk, packLayer } from './chunks.ts'

/** The file MUST NOT change. */
export async function packAttachment(
  file: string,
  store: ContentStore,
  options: PackOptions = {},
): Promise<Attachment> {
  const { size } = await fs.stat(file)
  const { chunks } = await packDisk(file, store, options)
  return { bytes: size, chunks }
}

export async function packBytes(bytes: Buffer, store: ContentStore, options: PackOptions = {}): Promise<Attachment> {
  const source = {
    async read(target: Buffer, at: number): Promise<void> {
      target.fill(0, bytes.copy(target, 0, at))
    },
  }
  const { chunks } = await packLayer([{ offset: 0, length: wholeBlocks(bytes.length), at: 0 }], source, store, options)
  return { bytes: bytes.length, chunks }
}
