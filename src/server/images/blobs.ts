// Downloads of image content by digest, for agents and for other servers.
import { notFound } from '../../api/errors.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { digestPattern } from '../../images/format/format.ts'
import type { Download } from '../transfer/downloads.ts'

/** Returns undefined for content that is not stored, and for text that is not a digest. */
export const blobBytes = async (content: ContentStore, digest: string): Promise<number | undefined> =>
  digestPattern.test(digest) ? content.size(digest) : undefined

export async function blobOf(content: ContentStore, digest: string, hint: string): Promise<Download> {
  const bytes = await blobBytes(content, digest)
  if (bytes === undefined) throw notFound('blobs', digest.slice(0, 80), { hint })
  // A whole blob is verified while it is read. A client that requests ranges verifies the content itself.
  const read: Download['read'] = (start, end) =>
    start === 0 && end === bytes ? content.open(digest) : content.open(digest, { start, end })
  return { name: digest, bytes, tag: digest, read }
}
