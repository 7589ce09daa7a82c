// Tar files, one entry after the other: written as they come, read without holding more than a piece. Plain files only.
import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'

const blockBytes = 512
const pieceBytes = 1_048_576
/** More than this does not fit into the octal digits of the header. */
const mostOctal = 8 ** 11 - 1

export class TarError extends Error {
  override readonly name = 'TarError'
}

export class TarWriter {
  readonly #file: FileHandle
  readonly #hash: Hash = createHash('sha256')
  #bytes = 0

  constructor(file: FileHandle) {
    this.#file = file
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Of everything that was written so far. */
  sha256(): string {
    return this.#hash.copy().digest('hex')
  }

  async add(name: string, content: Uint8Array | AsyncIterable<Uint8Array>, bytes?: number): Promise<void> {
    const isWhole = content instanceof Uint8Array
    const size = bytes ?? (isWhole ? content.length : 0)
    await this.#write(headerOf(name, size))
    let written = 0
    for await (const piece of isWhole ? [content] : content) {
      written += piece.length
      if (written > size) break
      await this.#write(piece)
    }
    if (written !== size) throw new TarError(`${name} should have ${size} bytes, and has ${written}`)
    await this.#write(Buffer.alloc(paddingOf(size)))
  }

  async end(): Promise<void> {
    await this.#write(Buffer.alloc(2 * blockBytes))
  }

  async #write(piece: Uint8Array): Promise<void> {
    this.#hash.update(piece)
    this.#bytes += piece.length
    for (let at = 0; at < piece.length; ) at += (await this.#file.write(piece, at)).bytesWritten
  }
}

export interface TarEntry {
  readonly name: string
  readonly bytes: number
  /** Of everything before this entry. */
  readonly sha256Before: string
  /** Read or left, but not kept for later. */
  content(): AsyncGenerator<Buffer>
}

export async function* readTar(file: FileHandle): AsyncGenerator<TarEntry> {
  const hash = createHash('sha256')
  let at = 0
  const take = async (bytes: number): Promise<Buffer> => {
    const piece = Buffer.allocUnsafe(bytes)
    for (let read = 0; read < bytes; ) {
      const { bytesRead } = await file.read(piece, read, bytes - read, at + read)
      if (bytesRead === 0) throw new TarError('it ends in the middle')
      read += bytesRead
    }
    at += bytes
    return piece
  }
  for (;;) {
    const sha256Before = hash.copy().digest('hex')
    const header = await take(blockBytes)
    if (header.every((byte) => byte === 0)) return
    const { name, size } = parseHeader(header)
    hash.update(header)
    let left = size
    async function* content(): AsyncGenerator<Buffer> {
      while (left > 0) {
        const piece = await take(Math.min(left, pieceBytes))
        left -= piece.length
        hash.update(piece)
        yield piece
      }
    }
    yield { name, bytes: size, sha256Before, content }
    for await (const _ of content());
    hash.update(await take(paddingOf(size)))
  }
}

const paddingOf = (size: number): number => (blockBytes - (size % blockBytes)) % blockBytes

function headerOf(name: string, size: number): Buffer {
  const header = Buffer.alloc(blockBytes)
  if (Buffer.byteLength(name) > 99) throw new TarError(`the name ${name} is too long`)
  header.write(name, 0)
  header.write('0000600\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  if (size <= mostOctal) header.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  else {
    // As GNU tar does it: the highest bit, then a binary number.
    header[124] = 0x80
    header.writeBigUInt64BE(BigInt(size), 128)
  }
  header.write(`${Math.floor(Date.now() / 1_000).toString(8)}\0`, 136)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  header.write(`${checksumOf(header).toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

function parseHeader(header: Buffer): { name: string; size: number } {
  const text = (from: number, to: number): string => header.toString('utf8', from, to).replace(/\0.*$/s, '')
  if (Number.parseInt(text(148, 156), 8) !== checksumOf(header)) throw new TarError('it is no tar file, or damaged')
  const isBinary = ((header[124] ?? 0) & 0x80) !== 0
  const size = isBinary ? Number(header.readBigUInt64BE(128)) : Number.parseInt(text(124, 136), 8)
  if (!Number.isSafeInteger(size) || size < 0) throw new TarError('the size of an entry is not readable')
  return { name: text(0, 100), size }
}

/** The sum of all bytes, where its own place counts as blanks. */
function checksumOf(header: Buffer): number {
  let sum = 8 * 32
  for (const [place, byte] of header.entries()) if (place < 148 || place >= 156) sum += byte
  return sum
}
