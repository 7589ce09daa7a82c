// Reads Debian packages: dpkg-deb decompresses, and the tar archive inside is read here, so that nothing has to be
// written to disk that is not wanted, and owners and modes are kept whoever runs this.
import { run } from './programs.ts'
import type { Entry, Tree } from './tree.ts'

/** Puts those files of a package that are wanted into the tree. Paths are those of a merged /usr. */
export async function unpack(
  deb: string,
  tree: Tree,
  isWanted: (path: string) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const reader = new TarReader((path, entry) => {
    const merged = mergedPath(path)
    if (merged !== '' && entry.kind !== 'folder' && isWanted(merged)) tree.add(merged, entry)
  })
  await run('dpkg-deb', ['--fsys-tarfile', deb], { signal, each: (chunk) => reader.push(chunk) })
  reader.end()
}

/** In the image /bin, /sbin and /usr/sbin are all links to /usr/bin, so that the path never matters, and /lib one to
 *  /usr/lib; packages have files under each of them. */
export const mergedPath = (path: string): string =>
  path
    .replace(/^\.?\/*/, '')
    .replace(/^(bin|sbin|lib|lib64)(?=\/)/, 'usr/$1')
    .replace(/^usr\/sbin(?=\/)/, 'usr/bin')

const blockBytes = 512
type Found = (path: string, entry: Entry) => void

/** Reads a tar archive in pieces: plain, GNU long names, pax paths. */
export class TarReader {
  readonly #found: Found
  #rest: Buffer[] = []
  #restBytes = 0
  #neededBytes = blockBytes
  #header: Header | undefined
  #longName: string | undefined
  #longTarget: string | undefined
  #isOver = false

  constructor(found: Found) {
    this.#found = found
  }

  push(chunk: Buffer): void {
    this.#rest.push(chunk)
    this.#restBytes += chunk.length
    if (this.#restBytes < this.#neededBytes) return
    let bytes = this.#rest.length === 1 ? chunk : Buffer.concat(this.#rest)
    while (bytes.length >= this.#neededBytes && !this.#isOver) {
      const taken = this.#neededBytes
      this.#take(bytes.subarray(0, taken))
      bytes = bytes.subarray(taken)
    }
    this.#rest = [bytes]
    this.#restBytes = bytes.length
  }

  end(): void {
    if (!this.#isOver) throw new Error('the archive ends in the middle; remove it and download it again')
  }

  #take(bytes: Buffer): void {
    const header = this.#header
    if (header === undefined) {
      this.#header = readHeader(bytes)
      this.#isOver = this.#header === undefined
      this.#neededBytes = Math.ceil((this.#header?.size ?? 0) / blockBytes) * blockBytes
      if (this.#neededBytes === 0 && !this.#isOver) this.#take(bytes.subarray(0, 0))
      return
    }
    this.#header = undefined
    this.#neededBytes = blockBytes
    this.#member(header, bytes.subarray(0, header.size))
  }

  #member(header: Header, data: Buffer): void {
    if (header.type === 'L') this.#longName = text(data)
    else if (header.type === 'K') this.#longTarget = text(data)
    else if (header.type === 'x') this.#longName = /\d+ path=([^\n]*)\n/.exec(data.toString())?.[1] ?? this.#longName
    else {
      const path = (this.#longName ?? header.name).replace(/\/$/, '')
      const target = this.#longTarget ?? header.target
      this.#longName = undefined
      this.#longTarget = undefined
      const entry = entryOf(header, data, target)
      if (entry) this.#found(path, entry)
    }
  }
}

interface Header {
  readonly name: string
  readonly mode: number
  readonly size: number
  readonly type: string
  readonly target: string
}

function readHeader(block: Buffer): Header | undefined {
  if (block[0] === 0) return undefined
  const prefix = text(block.subarray(345, 500))
  const isPosix = block.toString('latin1', 257, 263) === 'ustar\0'
  const name = text(block.subarray(0, 100))
  return {
    name: isPosix && prefix !== '' ? `${prefix}/${name}` : name,
    mode: octal(block.subarray(100, 108)) & 0o7777,
    size: octal(block.subarray(124, 136)),
    type: String.fromCharCode(block[156] || 0x30),
    target: text(block.subarray(157, 257)),
  }
}

/** Hard links become relative-free symbolic ones: the same file under another name is all that is meant here. */
function entryOf({ type, mode }: Header, data: Buffer, target: string): Entry | undefined {
  if (type === '0') return { kind: 'file', mode, data: Buffer.from(data) }
  if (type === '5') return { kind: 'folder', mode }
  if (type === '2') return { kind: 'link', mode: 0o777, target }
  return type === '1' ? { kind: 'link', mode: 0o777, target: `/${mergedPath(target)}` } : undefined
}

const text = (bytes: Buffer): string => {
  const end = bytes.indexOf(0)
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end)
}
const octal = (bytes: Buffer): number => Number.parseInt(text(bytes).trim() || '0', 8)
