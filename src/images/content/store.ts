// Content by its digest, in a folder. What is there is whole: written to a temporary name, fsynced, renamed, the folder
// fsynced (or later, by who put it, before anything names it). What is read is checked. Safe for several processes at once, and beside the collector (see `deleteUnused`).
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { failpoint } from '../../platform/failpoint.ts'
import { syncFolder } from '../../platform/files.ts'
import { digestPattern } from '../format/format.ts'
import type { Content, ContentStore, Listed, PutOptions, Stored } from './content.ts'
import { digestOfBuffer, NoContentError, WrongContentError } from './content.ts'
import { writeAll } from './sparse-write.ts'
import { explainFull, ifAbsent, removeUnfinished, temporaryName } from './temporary-files.ts'

/** A hundred may be read at once, by twenty pushes. */
const pieceBytes = 2 ** 18
const readAtOnceBytes = 32 * 2 ** 20
const shards = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, '0'))

export interface ContentFolder extends ContentStore {
  /** Whatever it is used for. */
  delete(digest: string): Promise<boolean>
}

export async function openContentFolder(folder: string): Promise<ContentFolder> {
  const blobs = path.join(folder, 'blobs', 'sha256')
  const unfinished = path.join(folder, 'unfinished')
  const leaving = path.join(folder, 'leaving')
  for (const needed of [blobs, unfinished, leaving]) await makeFolder(needed)
  for (const made of [blobs, path.dirname(blobs), folder, path.dirname(folder)]) await syncFolder(made)
  await removeUnfinished(unfinished)

  const shardOf = (digest: string) => path.join(blobs, hexOf(digest).slice(0, 2))
  const fileOf = (digest: string) => path.join(shardOf(digest), hexOf(digest).slice(2))
  const leavingOf = (digest: string) => path.join(leaving, hexOf(digest))

  /** The collector moves content aside while it decides. Until then it is there, in one place or the other. */
  async function find<T>(digest: string, look: (file: string) => Promise<T>): Promise<T | undefined> {
    for (const file of [fileOf(digest), leavingOf(digest), fileOf(digest)]) {
      const found = await look(file).catch(ifAbsent(undefined))
      if (found !== undefined) return found
    }
    return undefined
  }

  const linkBack = (digest: string) =>
    fs.link(leavingOf(digest), fileOf(digest)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST' && error.code !== 'ENOENT') throw error
    })

  async function comeBack(digest: string): Promise<void> {
    await linkBack(digest)
    await fs.rm(leavingOf(digest), { force: true })
  }

  async function* open(digest: string, part?: { start: number; end: number }): AsyncGenerator<Buffer> {
    const file = await find(digest, (name) => fs.open(name, 'r'))
    if (file === undefined) throw new NoContentError(digest)
    try {
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
    } finally {
      await file.close()
    }
  }

  async function read(digest: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
    signal?.throwIfAborted()
    const file = await find(digest, (name) => fs.open(name, 'r'))
    if (file === undefined) throw new NoContentError(digest)
    try {
      const { size } = await file.stat()
      if (size > maxBytes) throw new WrongContentError(digest, `has ${size} bytes, more than the ${maxBytes} declared`)
      const content = Buffer.allocUnsafe(size)
      const { bytesRead } = await file.read(content, 0, size, 0)
      const isRight = bytesRead === size && (await digestOfBuffer(content)) === digest
      if (!isRight) throw new WrongContentError(digest, 'does not match its digest')
      return content
    } finally {
      await file.close()
    }
  }

  /** Touched before it is looked at: were it looked at first, the collector could take it between the two. */
  async function isKept({ digest, bytes }: Stored): Promise<boolean> {
    if (!(await touch(digest)) || (await size(digest)) !== bytes) return false
    const check = async () => {
      if (bytes <= readAtOnceBytes) await read(digest, bytes)
      else for await (const _ of open(digest));
      return true
    }
    // Damaged content is written again: so a store heals.
    return check().catch(() => false)
  }

  const size = (digest: string) => find(digest, (file) => fs.stat(file).then((stat) => stat.size))

  /** Once it is seen in its place after it was touched, the collector will see that it is new. */
  async function touch(digest: string): Promise<boolean> {
    for (let tries = 0; tries < 3; tries += 1) {
      const now = new Date()
      const isTouched = await fs.utimes(fileOf(digest), now, now).then(() => true, ifAbsent(false))
      if (isTouched && (await fs.access(fileOf(digest)).then(() => true, ifAbsent(false)))) return true
      await linkBack(digest) // Where it was just moved aside.
    }
    return false
  }

  let shardsMade: Promise<void> | undefined

  /** With the first content: most processes that open a store only look, and these are hundreds of folders. */
  function makeShards(): Promise<void> {
    const make = async () => {
      const there = new Set(await fs.readdir(blobs))
      for (const shard of shards) if (!there.has(shard)) await makeFolder(path.join(blobs, shard))
      await syncFolder(blobs)
    }
    shardsMade ??= make().catch((error) => {
      shardsMade = undefined
      throw error
    })
    return shardsMade
  }

  /** Bytes at hand have been checked; those of a stream are checked as they pass. */
  async function write(content: Content, expected: Partial<Stored>, options: PutOptions) {
    const { signal, maxBytes = Number.MAX_SAFE_INTEGER, syncing } = options
    const temporary = await temporaryName(unfinished)
    const hasher = content instanceof Uint8Array ? undefined : createHash('sha256')
    const limit = expected.bytes ?? maxBytes
    let bytes = 0
    try {
      const file = await fs.open(temporary, 'wx', 0o600)
      try {
        for await (const piece of content instanceof Uint8Array ? [content] : content) {
          signal?.throwIfAborted()
          bytes += piece.length
          if (bytes > limit) throw new WrongContentError(expected.digest, `has more than ${limit} bytes`)
          hasher?.update(piece)
          await writeAll(file, piece, bytes - piece.length)
          failpoint('images.put.write')
        }
        if (!syncing) await file.sync()
      } finally {
        await file.close()
      }
      const digest = hasher ? `sha256:${hasher.digest('hex')}` : (expected.digest ?? '')
      if (digest !== (expected.digest ?? digest) || bytes !== (expected.bytes ?? bytes))
        throw new WrongContentError(expected.digest, `is ${digest} of ${bytes} bytes`)
      await makeShards()
      failpoint('images.put.rename')
      signal?.throwIfAborted()
      await fs.rename(temporary, fileOf(digest))
      if (syncing) syncing.add(fileOf(digest), shardOf(digest))
      else await syncFolder(shardOf(digest))
      return { digest, bytes }
    } catch (error) {
      await fs.rm(temporary, { force: true })
      throw explainFull(error, folder)
    }
  }

  for (const hex of await fs.readdir(leaving)) await comeBack(`sha256:${hex}`)

  return {
    folder,
    open,
    read,
    touch,
    async put(content, options = {}) {
      if (!(content instanceof Uint8Array)) return write(content, {}, options)
      const stored = { digest: options.digest ?? (await digestOfBuffer(content)), bytes: content.length }
      return (await isKept(stored)) ? stored : write(content, stored, options)
    },
    async putExpected(expected, content, options = {}) {
      const isKnown = options.digest === expected.digest
      if (content instanceof Uint8Array && !isKnown && (await digestOfBuffer(content)) !== expected.digest)
        throw new WrongContentError(expected.digest, 'does not match its digest')
      if (!(await isKept(expected))) await write(content, expected, options)
    },
    size,
    /** Nobody else deletes from a folder of ours. */
    hold: async () => undefined,
    has: async (digest) => (await find(digest, (file) => fs.access(file).then(() => true))) ?? false,
    delete: (digest) => fs.unlink(fileOf(digest)).then(() => true, ifAbsent(false)),
    async deleteUnused(digest, beforeMs) {
      const aside = leavingOf(digest)
      if (!(await fs.rename(fileOf(digest), aside).then(() => true, ifAbsent(false)))) return false
      failpoint('images.delete')
      const isUnused = await fs.stat(aside).then(({ mtimeMs }) => mtimeMs < beforeMs, ifAbsent(false))
      if (isUnused) await fs.rm(aside, { force: true })
      else await comeBack(digest)
      return isUnused
    },
    async list({ after, limit }) {
      const items: Listed[] = []
      const hex = after === undefined ? '' : hexOf(after)
      for (const shard of shards.slice(hex === '' ? 0 : Number.parseInt(hex.slice(0, 2), 16))) {
        for (const rest of (await fs.readdir(path.join(blobs, shard)).catch(ifAbsent([]))).sort()) {
          if (shard + rest <= hex || !digestPattern.test(`sha256:${shard}${rest}`)) continue
          const stat = await fs.stat(path.join(blobs, shard, rest)).catch(ifAbsent(undefined))
          if (stat) items.push({ digest: `sha256:${shard}${rest}`, bytes: stat.size, modifiedMs: stat.mtimeMs })
          if (items.length === limit) return { items, after: items.at(-1)?.digest }
        }
      }
      return { items, after: undefined }
    },
  }
}

/** Only digests become paths. */
function hexOf(digest: string): string {
  if (!digestPattern.test(digest)) throw new TypeError(`${JSON.stringify(digest.slice(0, 80))} is not a digest`)
  return digest.slice('sha256:'.length)
}

const makeFolder = (folder: string) => fs.mkdir(folder, { recursive: true, mode: 0o700 })
