// The checksum of a record, on every engine: over what it is called, what it holds, and whose write it is. A value that was
// damaged, or stands under another key, is found when it is read, and never taken for a different one.
import { crc32 } from 'node:zlib'

/** `head` as JSON, so that no two heads make the same text. */
export const recordSum = (head: readonly (string | number | null)[], value: string | Uint8Array): number =>
  crc32(value, crc32(JSON.stringify(head)))
