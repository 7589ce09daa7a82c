// Reads the part of ELF files that the builder needs: the libraries of a program.
import { posix } from 'node:path'
import { mergedPath } from './deb.ts'
import type { Entry, Tree } from './tree.ts'

const programHeader = { load: 1, dynamic: 2 } as const
const tag = { end: 0, needed: 1, stringTable: 5 } as const
const asNumber = (value: bigint): number => Number(value)

export const isElf = (bytes: Uint8Array): boolean => Buffer.from(bytes.subarray(0, 4)).equals(Buffer.from('\x7fELF'))

interface Segment {
  readonly type: number
  readonly offset: number
  readonly address: number
  readonly size: number
}

/** 64 bits, little-endian, as on both architectures. */
function segmentsOf(bytes: Buffer): Segment[] {
  const start = asNumber(bytes.readBigUInt64LE(32))
  const [size, count] = [bytes.readUInt16LE(54), bytes.readUInt16LE(56)]
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * size
    return {
      type: bytes.readUInt32LE(at),
      offset: asNumber(bytes.readBigUInt64LE(at + 8)),
      address: asNumber(bytes.readBigUInt64LE(at + 16)),
      size: asNumber(bytes.readBigUInt64LE(at + 32)),
    }
  })
}

/** The "needed" entries of a program or library, such as libc.so.6. */
export function neededBy(bytes: Buffer): string[] {
  const segments = segmentsOf(bytes)
  const dynamic = segments.find(({ type }) => type === programHeader.dynamic)
  if (!dynamic) return []
  const entries: [number, number][] = []
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16) {
    const key = asNumber(bytes.readBigUInt64LE(at))
    if (key === tag.end) break
    entries.push([key, asNumber(bytes.readBigUInt64LE(at + 8))])
  }
  const address = entries.find(([key]) => key === tag.stringTable)?.[1] ?? 0
  const home = segments.find(
    (segment) =>
      segment.type === programHeader.load && segment.address <= address && address < segment.address + segment.size,
  )
  const strings = home ? address - home.address + home.offset : address
  return entries
    .filter(([key]) => key === tag.needed)
    .map(([, value]) => bytes.toString('latin1', strings + value, bytes.indexOf(0, strings + value)))
}

/** Copies programs with their libraries from one tree to another. */
export function copyWithLibraries(
  from: Tree,
  to: Tree,
  paths: readonly string[],
  libraryFolders: readonly string[],
): void {
  const waiting = [...paths]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (to.has(path)) continue
    const entry = from.get(path)
    if (!entry) throw new Error(`the downloaded packages have no /${path}; the image needs it`)
    to.add(path, entry)
    if (entry.kind === 'link') waiting.push(targetOf(path, entry))
    if (entry.kind !== 'file' || !isElf(entry.data)) continue
    for (const name of neededBy(Buffer.from(entry.data))) {
      const found = libraryFolders.map((folder) => `${folder}/${name}`).find((candidate) => from.has(candidate))
      if (found === undefined) throw new Error(`/${path} needs ${name}, which none of the downloaded packages has`)
      waiting.push(found)
    }
  }
}

const targetOf = (path: string, { target }: Entry & { kind: 'link' }): string =>
  mergedPath(posix.resolve('/', posix.dirname(path), target))
