// Protocol buffers, as far as etcd and typed Kubernetes clients need them: varints and length-delimited fields, written
// and read by field number.

const none = Buffer.alloc(0)

/** Encodings of nearly every tag and length, allocated once. */
const small = Array.from({ length: 0x80 }, (_, value) => Buffer.from([value]))

/** At most 53 bits, which no etcd revision reaches. */
function varint(value: number): Buffer {
  const known = small[value]
  if (known) return known
  const bytes: number[] = []
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}

const varintWire = 0
const fixed64Wire = 1
const bytesWire = 2
const fixed32Wire = 5
const maxVarintBytes = 10

const tag = (field: number, wire: number): Buffer => varint(field * 8 + wire)

/** Empty for zero, false and undefined, which proto3 does not encode. */
export const numberField = (field: number, value: number | boolean | undefined): Buffer =>
  value ? presentNumber(field, Number(value)) : none

/** Encodes zero too, for members of a "oneof". */
export const presentNumber = (field: number, value: number): Buffer =>
  Buffer.concat([tag(field, varintWire), varint(value)])

export const bytesField = (field: number, value: Buffer | string | undefined): Buffer =>
  value === undefined || value.length === 0
    ? none
    : messageField(field, typeof value === 'string' ? Buffer.from(value) : value)

/** Encodes an empty message too, which differs from an absent one. */
export const messageField = (field: number, value: Buffer): Buffer =>
  Buffer.concat([tag(field, bytesWire), varint(value.length), value])

export const message = (...fields: readonly Buffer[]): Buffer => Buffer.concat(fields)

export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
}

/** Varints beyond 53 bits (member ids of etcd) are rounded, which still tells them apart. */
export type FieldValue = number | Buffer

/** Calls `visit` for each field, in order. Skips fixed-width numbers, which no message that svc3 reads uses. */
export function readFields(bytes: Buffer, visit: (field: number, value: FieldValue) => void): void {
  let at = 0
  const readVarint = (): number => {
    let value = 0
    for (let shift = 0; shift < maxVarintBytes; shift++) {
      const byte = bytes[at++]
      if (byte === undefined) throw new ProtobufError('the message ends inside a number')
      value += (byte & 0x7f) * 2 ** (7 * shift)
      if (byte < 0x80) return value
    }
    throw new ProtobufError('a number is too long')
  }
  const skip = (length: number): number => {
    const from = at
    at += length
    if (at > bytes.length) throw new ProtobufError('the message ends inside a field')
    return from
  }
  while (at < bytes.length) {
    const head = readVarint()
    const field = Math.floor(head / 8)
    const wire = head % 8
    if (wire === varintWire) visit(field, readVarint())
    else if (wire === bytesWire) {
      const length = readVarint()
      const from = skip(length)
      visit(field, bytes.subarray(from, from + length))
    } else if (wire === fixed64Wire) skip(8)
    else if (wire === fixed32Wire) skip(4)
    else throw new ProtobufError(`a field has the unknown wire type ${wire}`)
  }
}
