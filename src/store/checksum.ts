// The checksum of a record, the same on every engine. It covers the record's key, its value and its write, so that a
// damaged value, or one stored under another key, is detected when it is read.
import { crc32 } from 'node:zlib'

/** `head` is encoded as JSON, so that different heads never make the same text. */
export const recordSum = (head: readonly (string | number | null)[], value: string | Uint8Array): number =>
  crc32(value, crc32(JSON.stringify(head)))
