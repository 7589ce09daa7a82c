// Reads and writes tar files as streams. Writes plain files, and reads what dpkg and GNU tar write.
import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'

const blockBytes = 512
/** Limits entries that contain the long name of the next one, because they are held in memory. */
const maxExtensionBytes = 1_048_576
/** The octal digits of the header cannot express more. */
const maxOctal = 8 ** 11 - 1

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

  /** The digest of everything written so far. */
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
  /** Without the trailing slash of folders. */
  readonly name: string
  /** As in the header: 0 a file, 1 a hard link, 2 a symbolic link, 5 a folder. */
  readonly type: string
  readonly mode: number
  /** The target of a link. */
  readonly target: string
  readonly bytes: number
  /** The digest of everything before this entry; empty if the reader has no hash. */
  readonly sha256Before: string
  /** MUST be read before the next entry is requested, or not at all. */
  content(): AsyncGenerator<Buffer>
}

/**
 * Throws TarError for a damaged or incomplete archive. Reads the source to its end, including bytes after the archive.
 */
export async function* readTar(source: AsyncIterable<Buffer>, hash?: Hash): AsyncGenerator<TarEntry> {
  const pieces = source[Symbol.asyncIterator]()
  let piece: Buffer = Buffer.alloc(0)
  /** Between one and `most` bytes. */
  const takeSome = async (most: number): Promise<Buffer> => {
    while (piece.length === 0) {
      const next = await pieces.next()
      if (next.done) throw new TarError('it is incomplete')
      piece = next.value
    }
    const taken = piece.subarray(0, most)
    piece = piece.subarray(taken.length)
    hash?.update(taken)
    return taken
  }
  const take = async (bytes: number): Promise<Buffer> => {
    const taken = Buffer.allocUnsafe(bytes)
    for (let at = 0; at < bytes; ) at += (await takeSome(bytes - at)).copy(taken, at)
    return taken
  }
  try {
    for (;;) {
      const sha256Before = hash?.copy().digest('hex') ?? ''
      const longer: { name?: string; target?: string; bytes?: number } = {}
      let header = parseHeader(await take(blockBytes))
      for (; header && 'LKxg'.includes(header.type); header = parseHeader(await take(blockBytes))) {
        if (header.bytes > maxExtensionBytes) throw new TarError('the name of an entry is too long')
        const data = await take(header.bytes)
        await take(paddingOf(header.bytes))
        if (header.type === 'L') longer.name = textIn(data)
        else if (header.type === 'K') longer.target = textIn(data)
        else if (header.type === 'x') Object.assign(longer, parsePax(data))
      }
      if (!header) break
      const { name, bytes, ...entry } = { ...header, ...longer }
      let left = bytes
      async function* content(): AsyncGenerator<Buffer> {
        while (left > 0) {
          const taken = await takeSome(left)
          left -= taken.length
          yield taken
        }
      }
      yield { ...entry, name: name.replace(/\/$/, ''), bytes, sha256Before, content }
      for await (const _ of content());
      await take(paddingOf(bytes))
    }
    // Otherwise a program that writes the archive would fail when writing its padding.
    while (!(await pieces.next()).done);
  } finally {
    await pieces.return?.()
  }
}

/** The content of a small entry. */
export async function contentOf(entry: TarEntry): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of entry.content()) pieces.push(piece)
  return Buffer.concat(pieces)
}

const paddingOf = (size: number): number => (blockBytes - (size % blockBytes)) % blockBytes

function headerOf(name: string, size: number): Buffer {
  const header = Buffer.alloc(blockBytes)
  if (Buffer.byteLength(name) > 99) throw new TarError(`the name ${name} is too long`)
  header.write(name, 0)
  header.write('0000600\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  if (size <= maxOctal) header.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  else {
    // GNU tar's format for large sizes: the highest bit, then a binary number.
    header[124] = 0x80
    header.writeBigUInt64BE(BigInt(size), 128)
  }
  header.write(`${Math.floor(Date.now() / 1_000).toString(8)}\0`, 136)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  header.write(`${checksumOf(header).toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

type Header = Pick<TarEntry, 'name' | 'type' | 'mode' | 'target' | 'bytes'>

/** Undefined at the end of the archive. */
function parseHeader(header: Buffer): Header | undefined {
  if (header.every((byte) => byte === 0)) return undefined
  const text = (from: number, to: number): string => textIn(header.subarray(from, to))
  const octal = (from: number, to: number): number => Number.parseInt(text(from, to).trim() || '0', 8)
  if (octal(148, 156) !== checksumOf(header)) throw new TarError('it is not a tar file, or it is damaged')
  const isBinary = ((header[124] ?? 0) & 0x80) !== 0
  // GNU tar has no prefix here, and other bytes after `ustar`.
  const prefix = header.toString('latin1', 257, 263) === 'ustar\0' ? text(345, 500) : ''
  return {
    name: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`,
    type: String.fromCharCode(header[156] || 0x30),
    mode: octal(100, 108) & 0o7777,
    target: text(157, 257),
    bytes: checkedSize(isBinary ? Number(header.readBigUInt64BE(128)) : octal(124, 136)),
  }
}

/** Records of `LENGTH KEY=VALUE\n`. The length includes itself. */
function parsePax(data: Buffer): Partial<Header> {
  const records = new Map<string, string>()
  for (let at = 0; at < data.length; ) {
    const length = Number.parseInt(data.toString('latin1', at, at + 8), 10)
    const [, key, value] = /^\d+ ([^=]+)=(.*)\n$/s.exec(data.toString('utf8', at, at + length)) ?? []
    if (key === undefined || value === undefined) throw new TarError('the extended header of an entry is not readable')
    records.set(key, value)
    at += length
  }
  const [name, target, bytes] = ['path', 'linkpath', 'size'].map((key) => records.get(key))
  return {
    ...(name !== undefined && { name }),
    ...(target !== undefined && { target }),
    ...(bytes !== undefined && { bytes: checkedSize(Number(bytes)) }),
  }
}

function checkedSize(size: number): number {
  if (!Number.isSafeInteger(size) || size < 0) throw new TarError('the size of an entry is not readable')
  return size
}

const textIn = (bytes: Buffer): string => bytes.toString('utf8').split('\0', 1)[0] ?? ''

/** The sum of all bytes, with the checksum field as blanks. */
function checksumOf(header: Buffer): number {
  let sum = 8 * 32
  for (const [place, byte] of header.entries()) if (place < 148 || place >= 156) sum += byte
  return sum
}
