// Writes a small FAT16 file system: what firmware reads. Names are of the old kind, eight letters and three.
import { sectorBytes } from './gpt.ts'
import type { Tree } from './tree.ts'

const sectorsPerCluster = 4
const clusterBytes = sectorsPerCluster * sectorBytes
const rootEntries = 512
const rootSectors = (rootEntries * 32) / sectorBytes
const endOfChain = 0xffff
/** 2023-11-14, 00:00. */
const date = ((2023 - 1980) << 9) | (11 << 5) | 14

interface Item {
  readonly name: string
  readonly cluster: number
  readonly size: number
  readonly isFolder: boolean
}

export function fatFileSystem(tree: Tree, sizeBytes: number, label: string): Buffer {
  const sectors = sizeBytes / sectorBytes
  const fatSectors = Math.ceil(((sectors / sectorsPerCluster + 2) * 2) / sectorBytes)
  const dataStart = (1 + 2 * fatSectors + rootSectors) * sectorBytes
  const clusters = Math.floor((sizeBytes - dataStart) / clusterBytes)
  if (clusters < 4085 || clusters > 65524) throw new Error(`${sizeBytes} bytes are no size for FAT16`)
  const disk = Buffer.alloc(sizeBytes)
  const fat = Buffer.alloc(fatSectors * sectorBytes)
  fat.writeUInt16LE(0xfff8, 0)
  fat.writeUInt16LE(endOfChain, 2)
  let next = 2

  const store = (data: Uint8Array): number => {
    const count = Math.ceil(data.length / clusterBytes)
    if (count === 0) return 0
    const first = next
    next += count
    if (next - 2 > clusters) throw new Error(`the files for the firmware do not fit in ${sizeBytes} bytes`)
    for (let at = first; at < next; at++) fat.writeUInt16LE(at === next - 1 ? endOfChain : at + 1, at * 2)
    disk.set(data, dataStart + (first - 2) * clusterBytes)
    return first
  }
  const children = (folder: string): string[] =>
    tree.sorted().flatMap(([path]) => (parentOf(path) === folder ? [path] : []))
  /** A folder's own place must be known to those in it, so it is taken before they are stored. */
  const storeFolder = (folder: string, above: number): number => {
    const own = store(new Uint8Array(clusterBytes))
    const items = [dots('.', own), dots('..', above), ...children(folder).map((path) => entry(storeItem(path, own)))]
    Buffer.concat(items).copy(disk, dataStart + (own - 2) * clusterBytes)
    return own
  }
  const storeItem = (path: string, above: number): Item => {
    const name = path.slice(path.lastIndexOf('/') + 1)
    const found = tree.get(path)
    if (found?.kind === 'folder') return { name, cluster: storeFolder(path, above), size: 0, isFolder: true }
    if (found?.kind !== 'file') throw new Error(`${path}: FAT has files and folders only`)
    return { name, cluster: store(found.data), size: found.data.length, isFolder: false }
  }

  const top = children('').map((path) => entry(storeItem(path, 0)))
  bootSector(sectors, fatSectors, label).copy(disk, 0)
  fat.copy(disk, sectorBytes)
  fat.copy(disk, (1 + fatSectors) * sectorBytes)
  Buffer.concat([volume(label), ...top]).copy(disk, (1 + 2 * fatSectors) * sectorBytes)
  return disk
}

const parentOf = (path: string): string => path.slice(0, Math.max(path.lastIndexOf('/'), 0))

function bootSector(sectors: number, fatSectors: number, label: string): Buffer {
  const bytes = Buffer.alloc(sectorBytes)
  bytes.write('\xeb\x3c\x90SVC3TINY', 0, 'latin1')
  bytes.writeUInt16LE(sectorBytes, 11)
  bytes.writeUInt8(sectorsPerCluster, 13)
  bytes.writeUInt16LE(1, 14) // sectors before the first table
  bytes.writeUInt8(2, 16) // tables
  bytes.writeUInt16LE(rootEntries, 17)
  bytes.writeUInt16LE(sectors < 65536 ? sectors : 0, 19)
  bytes.writeUInt8(0xf8, 21)
  bytes.writeUInt16LE(fatSectors, 22)
  bytes.writeUInt16LE(63, 24)
  bytes.writeUInt16LE(255, 26)
  bytes.writeUInt32LE(sectors < 65536 ? 0 : sectors, 32)
  bytes.writeUInt8(0x80, 36)
  bytes.writeUInt8(0x29, 38)
  bytes.writeUInt32LE(0x5c3d1f2a, 39)
  bytes.write(label.padEnd(11), 43, 'latin1')
  bytes.write('FAT16   ', 54, 'latin1')
  bytes.writeUInt16LE(0xaa55, 510)
  return bytes
}

function record(name: string, attributes: number, cluster: number, size: number): Buffer {
  const bytes = Buffer.alloc(32)
  bytes.write(name, 0, 'latin1')
  bytes.writeUInt8(attributes, 11)
  bytes.writeUInt16LE(date, 16)
  bytes.writeUInt16LE(date, 18)
  bytes.writeUInt16LE(date, 24)
  bytes.writeUInt16LE(cluster, 26)
  bytes.writeUInt32LE(size, 28)
  return bytes
}

const volume = (label: string): Buffer => record(label.padEnd(11), 0x08, 0, 0)
const dots = (name: string, cluster: number): Buffer => record(name.padEnd(11), 0x10, cluster, 0)

function entry({ name, cluster, size, isFolder }: Item): Buffer {
  const [, base = '', extension = ''] = /^([A-Z0-9-]{1,8})(?:\.([A-Z0-9]{1,3}))?$/.exec(name) ?? []
  if (base === '') throw new Error(`${name} is no name for FAT16`)
  return record(base.padEnd(8) + extension.padEnd(3), isFolder ? 0x10 : 0x20, cluster, size)
}
