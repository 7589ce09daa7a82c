// A content store in a folder. Content in it is complete: it is written under a temporary name, synced and renamed. Reads
// verify it. Safe for several processes at once, and beside the collector.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { ifAbsent, syncFolder } from '../../platform/files.ts'
import type { Content, ContentStore, Part, PutOptions, Stored } from './content.ts'
import { digestOfBuffer, NoContentError, WrongContentError } from './content.ts'
import { ContentFiles } from './files.ts'
import { writeAll } from './sparse-write.ts'
import { explainFull, temporaryName } from './temporary-files.ts'

/** Small, because a server may stream a hundred at once. */
const pieceBytes = 2 ** 18
const maxBufferBytes = 32 * 2 ** 20

export interface ContentFolder extends ContentStore {
  /** Deletes the content even if it is in use. */
  delete(digest: string): Promise<boolean>
}

export async function openContentFolder(folder: string): Promise<ContentFolder> {
  const files = new ContentFiles(folder)
  await files.open()
  const sizeOf = (digest: string) => files.find(digest, (file) => fs.stat(file).then(({ size }) => size))

  /** Touches the content before looking at it; otherwise the collector could delete it in between. */
  async function isStored({ digest, bytes }: Stored): Promise<boolean> {
    if (!(await files.touch(digest)) || (await sizeOf(digest)) !== bytes) return false
    const check = async () => {
      if (bytes <= maxBufferBytes) await read(files, digest, bytes)
      else for await (const _ of open(files, digest));
      return true
    }
    // Damaged content counts as missing, so that it is written again.
    return check().catch(() => false)
  }

  return {
    folder,
    open: (digest, part) => open(files, digest, part),
    read: (digest, maxBytes, signal) => read(files, digest, maxBytes, signal),
    touch: (digest) => files.touch(digest),
    async put(content, options = {}) {
      if (!(content instanceof Uint8Array)) return write(files, content, {}, options)
      const stored = { digest: options.digest ?? (await digestOfBuffer(content)), bytes: content.length }
      return (await isStored(stored)) ? stored : write(files, content, stored, options)
    },
    async putExpected(expected, content, options = {}) {
      const isKnown = options.digest === expected.digest
      if (content instanceof Uint8Array && !isKnown && (await digestOfBuffer(content)) !== expected.digest)
        throw new WrongContentError(expected.digest, 'does not match its digest')
      if (!(await isStored(expected))) await write(files, content, expected, options)
    },
    size: sizeOf,
    /** Does nothing: only svc3 deletes from its folders. */
    hold: async () => undefined,
    has: async (digest) => (await files.find(digest, (file) => fs.access(file).then(() => true))) ?? false,
    delete: (digest) => fs.unlink(files.fileOf(digest)).then(() => true, ifAbsent(false)),
    deleteUnused: (digest, beforeMs) => files.deleteUnused(digest, beforeMs),
    list: (page) => files.list(page),
  }
}

async function openFile(files: ContentFiles, digest: string): Promise<fs.FileHandle> {
  const file = await files.find(digest, (name) => fs.open(name, 'r'))
  if (file === undefined) throw new NoContentError(digest)
  return file
}

async function* open(files: ContentFiles, digest: string, part?: Part): AsyncGenerator<Buffer> {
  await using file = await openFile(files, digest)
  const { size } = await file.stat()
  const hasher = part ? undefined : createHash('sha256')
  const { start, end } = part ?? { start: 0, end: size }
  for (let at = start; at < Math.min(end, size); ) {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, Math.min(end, size) - at))
    const { bytesRead } = await file.read(piece, 0, piece.length, at)
    if (bytesRead === 0) throw new WrongContentError(digest, 'was resized during the read')
    hasher?.update(piece.subarray(0, bytesRead))
    yield piece.subarray(0, bytesRead)
    at += bytesRead
  }
  if (hasher && `sha256:${hasher.digest('hex')}` !== digest)
    throw new WrongContentError(digest, 'does not match its digest')
}

async function read(files: ContentFiles, digest: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
  signal?.throwIfAborted()
  await using file = await openFile(files, digest)
  const { size } = await file.stat()
  if (size > maxBytes) throw new WrongContentError(digest, `has ${size} bytes, more than the ${maxBytes} declared`)
  const content = Buffer.allocUnsafe(size)
  const { bytesRead } = await file.read(content, 0, size, 0)
  if (bytesRead !== size || (await digestOfBuffer(content)) !== digest)
    throw new WrongContentError(digest, 'does not match its digest')
  return content
}

/** Streams are verified as they pass; buffers have been verified by the caller. */
async function write(
  files: ContentFiles,
  content: Content,
  expected: Partial<Stored>,
  { signal, maxBytes = Number.MAX_SAFE_INTEGER, syncing }: PutOptions,
): Promise<Stored> {
  const temporary = await temporaryName(files.unfinished)
  const hasher = content instanceof Uint8Array ? undefined : createHash('sha256')
  const limit = expected.bytes ?? maxBytes
  let bytes = 0
  try {
    {
      await using file = await fs.open(temporary, 'wx', 0o600)
      for await (const piece of content instanceof Uint8Array ? [content] : content) {
        signal?.throwIfAborted()
        bytes += piece.length
        if (bytes > limit) throw new WrongContentError(expected.digest, `has more than ${limit} bytes`)
        hasher?.update(piece)
        await writeAll(file, piece, bytes - piece.length)
        failpoint('images.put.write')
      }
      if (!syncing) await file.sync()
    }
    const digest = hasher ? `sha256:${hasher.digest('hex')}` : (expected.digest ?? '')
    if (digest !== (expected.digest ?? digest) || bytes !== (expected.bytes ?? bytes))
      throw new WrongContentError(expected.digest, `is ${digest} of ${bytes} bytes`)
    await files.makeShards()
    failpoint('images.put.rename')
    signal?.throwIfAborted()
    await fs.rename(temporary, files.fileOf(digest))
    if (syncing) syncing.add(files.fileOf(digest), files.shardOf(digest))
    else await syncFolder(files.shardOf(digest))
    return { digest, bytes }
  } catch (error) {
    await fs.rm(temporary, { force: true })
    throw explainFull(error, files.folder)
  }
}
