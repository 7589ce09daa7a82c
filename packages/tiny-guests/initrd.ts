// Writes a tree as a cpio archive in "newc" format, Linux's first RAM disk.
import { type Entry, type Tree, typeBits } from './tree.ts'

const magic = '070701'
const trailer = 'TRAILER!!!'

export function cpioArchive(tree: Tree): Buffer {
  const entries = tree.sorted()
  const parts = entries.flatMap(([path, entry], index) => member(path, entry, index + 1))
  return Buffer.concat([...parts, ...member(trailer, { kind: 'file', mode: 0, data: new Uint8Array() }, 0)])
}

function member(path: string, entry: Entry, inode: number): Buffer[] {
  const name = Buffer.from(`${path}\0`)
  const data = contents(entry)
  const isDevice = entry.kind === 'device'
  const fields = [
    inode,
    inode === 0 ? 0 : typeBits[entry.kind] | entry.mode,
    entry.uid ?? 0,
    entry.gid ?? 0,
    entry.kind === 'folder' ? 2 : 1,
    0, // time: the same archive from the same tree
    data.length,
    0,
    0,
    isDevice ? entry.major : 0,
    isDevice ? entry.minor : 0,
    name.length,
    0, // checksum: unused in newc
  ]
  const header = Buffer.from(magic + fields.map((field) => field.toString(16).padStart(8, '0').toUpperCase()).join(''))
  return [padded(Buffer.concat([header, name])), padded(data)]
}

function contents(entry: Entry): Buffer {
  if (entry.kind === 'link') return Buffer.from(entry.target)
  return entry.kind === 'file' ? Buffer.from(entry.data) : Buffer.alloc(0)
}

/** Names with their header, and contents, are padded to a multiple of four bytes. */
const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
