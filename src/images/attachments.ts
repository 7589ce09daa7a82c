// Files that go with a disk: kernel, initrd, the memory of a running VM. Chunks of their own, like a disk's.
import fs from 'node:fs/promises'
import type { PackOptions } from './chunks.ts'
import { packDisk } from './chunks.ts'
import type { ContentStore } from './content.ts'
import type { Attachment } from './format.ts'

/** The file must not change meanwhile. */
export async function packAttachment(
  file: string,
  store: ContentStore,
  options: PackOptions = {},
): Promise<Attachment> {
  const { size } = await fs.stat(file)
  const { chunks } = await packDisk(file, store, options)
  return { bytes: size, chunks }
}
