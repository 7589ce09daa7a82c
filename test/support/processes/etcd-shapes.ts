// What may be asked of etcd so that shims over SQL databases, which know a few forms only, understand it as well:
// transactions that compare the revision of one key and then write or delete that key, and plain ranges.
import assert from 'node:assert/strict'
import { methods } from '../../../src/store/etcd/protocol.ts'
import { type FieldValue, readFields } from '../../../src/store/etcd/wire.ts'

/** The forms that were sent so far. */
export const transactionsSeen = new Set<'create' | 'update' | 'delete' | 'together'>()

const asked: ReadonlySet<string> = new Set(Object.values(methods))

/** Throws for a call that a shim does not know; with `mayShare`, several that it knows may come in one. */
export function assertKnownToShims(method: string, body: Buffer, mayShare = false): void {
  assert.ok(asked.has(method), `${method} is not one of the methods that shims know`)
  if (method === methods.txn) for (const txn of mayShare ? unshared(body) : [body]) assertCompareAndSet(txn)
  if (method === methods.range) assertPlainRange(body)
}

type Fields = ReadonlyMap<number, readonly FieldValue[]>

function fieldsOf(body: FieldValue | undefined): Fields {
  assert.ok(Buffer.isBuffer(body))
  const fields = new Map<number, FieldValue[]>()
  readFields(body, (field, value) => fields.set(field, [...(fields.get(field) ?? []), value]))
  return fields
}

const numbersOf = (fields: Fields): number[] => [...fields.keys()].sort((a, b) => a - b)

/** What is in the only such field, which has nothing else beside it. */
function only(body: FieldValue | undefined, field: number, what: string): FieldValue | undefined {
  const fields = fieldsOf(body)
  assert.deepEqual(numbersOf(fields), [field], what)
  assert.equal(fields.get(field)?.length, 1, what)
  return fields.get(field)?.[0]
}

function unshared(body: Buffer): Buffer[] {
  const txn = fieldsOf(body)
  if (txn.has(1)) return [body]
  transactionsSeen.add('together')
  assert.deepEqual(numbersOf(txn), [2, 3], 'nothing is compared for all of them')
  only(txn.get(3)?.[0], 2, 'what is never done is a put')
  return (txn.get(2) ?? []).map((each) => only(each, 4, 'each is a transaction') as Buffer)
}

const [target, mod, key, value, modRevision] = [2, 2, 3, 2, 6]

function assertCompareAndSet(body: Buffer): void {
  const txn = fieldsOf(body)
  const [comparisons = [], success = [], failure = []] = [1, 2, 3].map((field) => txn.get(field))
  assert.equal(comparisons.length, 1, 'a transaction compares one thing')
  const comparison = fieldsOf(comparisons[0])
  assert.deepEqual(numbersOf(comparison), [target, key, modRevision], 'it compares a revision, for being equal')
  assert.deepEqual(comparison.get(target), [mod], 'the revision of the last change')
  const [compared] = comparison.get(key) ?? []
  assert.equal(success.length, 1, 'where it is equal, there is one operation')
  const [operation = 0] = numbersOf(fieldsOf(success[0]))
  const isPut = operation === 2
  const written = fieldsOf(only(success[0], isPut ? 2 : 3, 'which puts or deletes'))
  assert.deepEqual(numbersOf(written), isPut ? [1, value] : [1], 'without options')
  assert.deepEqual(written.get(1), [compared], 'the key that was compared')
  const isCreate = comparison.get(modRevision)?.[0] === 0
  transactionsSeen.add(isCreate ? 'create' : isPut ? 'update' : 'delete')
  if (isCreate) assert.ok(isPut && failure.length === 0, 'a create has nothing for the other case')
  else {
    assert.equal(failure.length, 1, 'where it is not equal, there is one operation')
    const read = only(failure[0], 1, 'which reads')
    assert.deepEqual(only(read, 1, 'without options'), compared, 'the key that was compared')
  }
}

/** Key, end, limit, revision, whether it only counts: no sorting, no filters. */
const plain: ReadonlySet<number> = new Set([1, 2, 3, 4, 9])

function assertPlainRange(body: Buffer): void {
  const range = fieldsOf(body)
  for (const field of range.keys()) assert.ok(plain.has(field), `shims do not know field ${field} of a range`)
  const [end] = range.get(2) ?? []
  // They take the end for that of a folder: the byte after "/" is "0".
  if (end !== undefined) assert.ok(Buffer.isBuffer(end) && end.at(-1) === 0x30, 'a range ends where a folder ends')
}
