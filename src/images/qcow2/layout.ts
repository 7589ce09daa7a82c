// The layout of a qcow2 file with known content: header and tables, then the data in the order of the disk. Each part
// can be computed alone, so a file can be written in parallel or served by ranges.
import type { Segment } from '../format/extents.ts'
import { blockBytes } from '../format/format.ts'
import { qcow2Magic } from './header.ts'

const entriesPerTable = blockBytes / 8
const refcountsPerBlock = blockBytes / 2
const headerBytes = 104
/** Bit 63: the refcount is exactly one, which QEMU's checks expect. */
const copied = 0x8000_0000

export function layOutQcow2(segments: readonly Segment[], virtualSizeBytes: number) {
  const regionBytes = entriesPerTable * blockBytes
  const l1Entries = Math.ceil(virtualSizeBytes / regionBytes)
  const l1Clusters = Math.ceil(l1Entries / entriesPerTable)
  const { regions, dataIndexOf, dataClusters } = indexSegments(segments, regionBytes)

  // The refcount table covers itself, so it grows until it covers everything.
  let refcountBlocks = 1
  let refcountTables = 1
  let clusters = 0
  for (let isEnough = false; !isEnough; ) {
    clusters = 1 + refcountTables + refcountBlocks + l1Clusters + regions.length + dataClusters
    isEnough = refcountBlocks * refcountsPerBlock >= clusters && refcountTables * entriesPerTable >= refcountBlocks
    refcountBlocks = Math.ceil(clusters / refcountsPerBlock)
    refcountTables = Math.ceil(refcountBlocks / entriesPerTable)
  }
  const firstBlock = 1 + refcountTables
  const firstL1 = firstBlock + refcountBlocks
  const firstL2 = firstL1 + l1Clusters
  const tableClusters = firstL2 + regions.length

  const header = () => {
    const cluster = Buffer.alloc(blockBytes)
    cluster.writeUInt32BE(qcow2Magic, 0)
    cluster.writeUInt32BE(3, 4)
    cluster.writeUInt32BE(Math.log2(blockBytes), 20)
    writeLarge(cluster, virtualSizeBytes, 24)
    cluster.writeUInt32BE(l1Entries, 36)
    writeLarge(cluster, firstL1 * blockBytes, 40)
    writeLarge(cluster, blockBytes, 48)
    cluster.writeUInt32BE(refcountTables, 56)
    cluster.writeUInt32BE(4, 96) // 16 bits per refcount
    cluster.writeUInt32BE(headerBytes, 100)
    return cluster
  }

  const pointers = (first: number, count: number, flag: number) => {
    const cluster = Buffer.alloc(blockBytes)
    for (let index = 0; index < count; index += 1) writeLarge(cluster, (first + index) * blockBytes, index * 8, flag)
    return cluster
  }

  const refcountBlock = (index: number) => {
    const cluster = Buffer.alloc(blockBytes)
    const used = Math.min(refcountsPerBlock, clusters - index * refcountsPerBlock)
    for (let at = 0; at < used; at += 1) cluster.writeUInt16BE(1, at * 2)
    return cluster
  }

  const l1 = (index: number) => {
    const cluster = Buffer.alloc(blockBytes)
    for (const [position, { number }] of regions.entries()) {
      const at = number - index * entriesPerTable
      if (at >= 0 && at < entriesPerTable) writeLarge(cluster, (firstL2 + position) * blockBytes, at * 8, copied)
    }
    return cluster
  }

  const l2 = ({ number, first, end }: Region) => {
    const cluster = Buffer.alloc(blockBytes)
    const start = number * regionBytes
    for (let index = first; index < end; index += 1) {
      const { offset, length, chunk } = segments[index] as Segment
      const from = Math.max(offset, start)
      const stop = Math.min(offset + length, start + regionBytes)
      for (let place = from; place < stop; place += blockBytes) {
        const at = ((place - start) / blockBytes) * 8
        const data = tableClusters + (dataIndexOf[index] ?? 0) + (place - offset) / blockBytes
        if (chunk) writeLarge(cluster, data * blockBytes, at, copied)
        else cluster.writeUInt32BE(1, at + 4) // reads as zeros
      }
    }
    return cluster
  }

  const placeBySegment = new Map(segments.map((segment, index) => [segment, dataIndexOf[index] ?? 0]))
  return {
    bytes: clusters * blockBytes,
    /** Clusters of 64 KiB before the data. */
    tableClusters,
    table(index: number): Buffer {
      if (index === 0) return header()
      if (index < firstBlock) {
        const first = (index - 1) * entriesPerTable
        return pointers(firstBlock + first, Math.min(entriesPerTable, refcountBlocks - first), 0)
      }
      if (index < firstL1) return refcountBlock(index - firstBlock)
      if (index < firstL2) return l1(index - firstL1)
      return l2(regions[index - firstL2] as Region)
    },
    /** The offset of a data segment in the file. */
    placeOf: (segment: Segment): number => (tableClusters + (placeBySegment.get(segment) ?? 0)) * blockBytes,
  }
}

/** The 512 MiB of the disk that one L2 table maps, and their segments. */
interface Region {
  readonly number: number
  readonly first: number
  end: number
}

function indexSegments(segments: readonly Segment[], regionBytes: number) {
  const regions: Region[] = []
  const dataIndexOf: number[] = []
  let dataClusters = 0
  for (const [index, { offset, length, chunk }] of segments.entries()) {
    dataIndexOf.push(dataClusters)
    if (chunk) dataClusters += length / blockBytes
    const last = Math.floor((offset + length - 1) / regionBytes)
    for (let number = Math.floor(offset / regionBytes); number <= last; number += 1) {
      if (regions.at(-1)?.number !== number) regions.push({ number, first: index, end: index })
      const region = regions.at(-1)
      if (region) region.end = index + 1
    }
  }
  return { regions, dataIndexOf, dataClusters }
}

function writeLarge(target: Buffer, value: number, at: number, flag = 0): void {
  target.writeUInt32BE((Math.floor(value / 2 ** 32) | flag) >>> 0, at)
  target.writeUInt32BE(value % 2 ** 32, at + 4)
}
