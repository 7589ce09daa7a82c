// Computes which chunk is visible at each offset of a disk that is stored as a stack of layers. All lists are sorted
// and free of overlaps, so no function takes more than linear time.
import type { Chunk, Extent, Layer } from './format.ts'

export interface Segment {
  readonly offset: number
  readonly length: number
  /** Undefined for zeros. */
  readonly chunk: Chunk | undefined
  /** Where the segment begins in the uncompressed bytes of the chunk. */
  readonly at: number
}

/** Returns the visible segments of layers, lowest layer first. Zeros are included only where a layer records them. */
export function resolveLayers(layers: readonly Layer[]): readonly Segment[] {
  let seen: readonly Segment[] = []
  for (const layer of layers) {
    const own = segmentsOf(layer)
    seen = seen.length === 0 ? own : mergeSegments(subtractSegments(seen, own), own)
  }
  return seen
}

function segmentsOf({ chunks, zeros = [] }: Layer): readonly Segment[] {
  const data: Segment[] = []
  for (const chunk of chunks) {
    let at = 0
    for (const [offset, length] of chunk.extents) {
      data.push({ offset, length, chunk, at })
      at += length
    }
  }
  return zeros.length === 0 ? data : mergeSegments(data, zeros.map(zeroSegment))
}

const zeroSegment = ([offset, length]: Extent): Segment => ({ offset, length, chunk: undefined, at: 0 })

/** The lists MUST NOT overlap. */
function mergeSegments(a: readonly Segment[], b: readonly Segment[]): readonly Segment[] {
  const merged: Segment[] = []
  let index = 0
  for (const segment of a) {
    for (let other = b[index]; other && other.offset < segment.offset; other = b[index]) {
      merged.push(other)
      index += 1
    }
    merged.push(segment)
  }
  for (; index < b.length; index += 1) merged.push(b[index] as Segment)
  return merged
}

/** The parts of `from` that are not in `what`. */
function subtractSegments(from: readonly Segment[], what: readonly Segment[]): readonly Segment[] {
  const left: Segment[] = []
  let first = 0
  for (const segment of from) {
    const end = segment.offset + segment.length
    for (let other = what[first]; other && other.offset + other.length <= segment.offset; other = what[first])
      first += 1
    let start = segment.offset
    for (let index = first; start < end; index += 1) {
      const other = what[index]
      const stop = other ? Math.min(end, other.offset) : end
      if (stop > start) left.push(cut(segment, start, stop))
      if (!other || other.offset >= end) break
      start = Math.max(start, other.offset + other.length)
    }
  }
  return left
}

const cut = (segment: Segment, start: number, end: number): Segment =>
  start === segment.offset && end === start + segment.length
    ? segment
    : { ...segment, offset: start, length: end - start, at: segment.at + start - segment.offset }

/** Returns the parts of `zeros` that hide data of the layers below. Others need not be recorded. */
export function neededZeros(zeros: readonly Extent[], below: readonly Layer[]): Extent[] {
  const all = zeros.map(zeroSegment)
  const data = resolveLayers(below).filter(({ chunk }) => chunk !== undefined)
  const idle = subtractSegments(all, data)
  const needed: Extent[] = []
  for (const { offset, length } of subtractSegments(all, idle)) addExtent(needed, offset, length)
  return needed
}

/** Appends an extent, or lengthens the last one if they are adjacent. */
export function addExtent(extents: Extent[], offset: number, length: number): void {
  const last = extents.at(-1)
  if (last && last[0] + last[1] === offset) extents[extents.length - 1] = [last[0], last[1] + length]
  else extents.push([offset, length])
}

/** The index of the first segment that ends after `offset`, or the number of segments. */
export function firstBeyond(segments: readonly Segment[], offset: number): number {
  let low = 0
  let high = segments.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const { offset: start, length } = segments[middle] as Segment
    if (start + length > offset) high = middle
    else low = middle + 1
  }
  return low
}
