// Protocol buffers, as much as etcd's messages need: varints and length-delimited fields, written and read by number.

const none = Buffer.alloc(0)

/** Nearly every tag and length, made once. */
const small = Array.from({ length: 0x80 }, (_, value) => Buffer.from([value]))

/** At most 53 bits, which no revision of etcd reaches. */
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

const tag = (field: number, wire: number): Buffer => varint(field * 8 + wire)

/** Zero, false and nothing are left out, as the format has it. */
export const numberField = (field: number, value: number | boolean | undefined): Buffer =>
  value ? presentNumber(field, Number(value)) : none

/** Also when it is zero: for members of a "oneof". */
export const presentNumber = (field: number, value: number): Buffer =>
  Buffer.concat([tag(field, varintWire), varint(value)])

export const bytesField = (field: number, value: Buffer | string | undefined): Buffer =>
  value === undefined || value.length === 0
    ? none
    : messageField(field, typeof value === 'string' ? Buffer.from(value) : value)

/** Also when it is empty: an empty message is not the same as none. */
export const messageField = (field: number, value: Buffer): Buffer =>
  Buffer.concat([tag(field, bytesWire), varint(value.length), value])

export const message = (...fields: readonly Buffer[]): Buffer => Buffer.concat(fields)

export class WireError extends Error {
  override readonly name = 'WireError'
}

/** A varint as a number. Beyond 53 bits (identifiers of members) it is rounded, which is enough to tell them apart. */
export type FieldValue = number | Buffer

/** Hands each field to `visit`, in order. Numbers of other widths than etcd uses are passed over. */
export function readFields(bytes: Buffer, visit: (field: number, value: FieldValue) => void): void {
  let at = 0
  const readVarint = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = bytes[at++]
      if (byte === undefined) throw new WireError('a message of etcd ends in the middle of a number')
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }
  const skip = (length: number): number => {
    const from = at
    at += length
    if (at > bytes.length) throw new WireError('a message of etcd ends in the middle of a field')
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
    else throw new WireError(`a message of etcd has a field of an unknown kind (${wire})`)
  }
}
