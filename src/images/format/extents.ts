// Arithmetic of places on a disk: which chunk shows through where when layers lie over each other. Pure. Every list is
// in order and without overlaps, and so are the results; each step is one pass over its lists.
import type { Chunk, Extent, Layer } from './format.ts'

export interface Segment {
  readonly offset: number
  readonly length: number
  /** What is to be seen there; undefined for zeros. */
  readonly chunk: Chunk | undefined
  /** Where in the chunk's bytes it begins. */
  readonly at: number
}

/** What is to be seen of a stack of layers. Zeros stand only where a layer says so. */
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

/** Both lists in one; they have no place in common. */
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

/** What is left of `from` where `what` is not. */
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

/** The part of a segment between two places on the disk. */
const cut = (segment: Segment, start: number, end: number): Segment =>
  start === segment.offset && end === start + segment.length
    ? segment
    : { ...segment, offset: start, length: end - start, at: segment.at + start - segment.offset }

/** Those zeros that hide something: where the layers below have nothing, zeros need not be said. */
export function neededZeros(zeros: readonly Extent[], below: readonly Layer[]): Extent[] {
  const all = zeros.map(zeroSegment)
  const data = resolveLayers(below).filter(({ chunk }) => chunk !== undefined)
  const idle = subtractSegments(all, data)
  const needed: Extent[] = []
  for (const { offset, length } of subtractSegments(all, idle)) addExtent(needed, offset, length)
  return needed
}

/** Appends an extent, as one with the last where it follows on it. */
export function addExtent(extents: Extent[], offset: number, length: number): void {
  const last = extents.at(-1)
  if (last && last[0] + last[1] === offset) extents[extents.length - 1] = [last[0], last[1] + length]
  else extents.push([offset, length])
}

/** The first segment that reaches beyond a place; as many as there are when none does. */
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
