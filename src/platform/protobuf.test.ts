// Protocol buffers by hand: what is written is read back, and broken bytes are told from whole ones.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  bytesField,
  type FieldValue,
  message,
  numberField,
  ProtobufError,
  presentNumber,
  readFields,
} from './protobuf.ts'

function fieldsOf(bytes: Buffer): [number, FieldValue][] {
  const found: [number, FieldValue][] = []
  readFields(bytes, (field, value) => found.push([field, typeof value === 'number' ? value : Buffer.from(value)]))
  return found
}

test('numbers and bytes of protocol buffers come back, whatever their size', () => {
  const number = fc.maxSafeInteger().map(Math.abs)
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5_000 }),
      number,
      fc.uint8Array({ maxLength: 300 }),
      (field, value, bytes) => {
        const body = Buffer.from(bytes)
        assert.deepEqual(fieldsOf(message(presentNumber(field, value), bytesField(field + 1, body))), [
          [field, value],
          ...(body.length > 0 ? [[field + 1, body]] : []),
        ])
      },
    ),
  )
})

test('protocol buffers are written as the format has it', () => {
  assert.equal(
    message(numberField(1, 150), bytesField(2, 'testing')).toString('hex'),
    '0896011207'.concat('74657374696e67'),
  )
  assert.equal(message(numberField(1, 0), numberField(1, false), bytesField(2, '')).length, 0)
  assert.equal(presentNumber(6, 0).toString('hex'), '3000')
})

test('fields of protocol buffers of other widths are passed over, and broken bytes refused', () => {
  const fixed = Buffer.from('0d01020304' + '110102030405060708' + '0801', 'hex')
  assert.deepEqual(fieldsOf(fixed), [[1, 1]])
  // Minus one, in ten bytes: not ours, and no reason to fail.
  assert.ok((fieldsOf(Buffer.from('08ffffffffffffffffff01', 'hex'))[0]?.[1] as number) > Number.MAX_SAFE_INTEGER)
  for (const broken of ['08', '0896', '1205616263', '0d0102', '0b'])
    assert.throws(() => fieldsOf(Buffer.from(broken, 'hex')), ProtobufError, broken)
})
