// The limit of the rendered texts that are kept.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { keepText, keptText } from './rendered-texts.ts'

const mebibyte = 2 ** 20
const size = 16_384
const texts = (count: number): object[] => Array.from({ length: count }, () => ({}))

it('rendered texts are kept up to 64 MiB in all, those first that were used last', () => {
  const lists = [{}, {}]
  const records = texts(10_000)
  const [first] = records as [object]
  const text = 'x'.repeat(size)
  for (const record of records)
    for (const list of lists) {
      keepText(list, record, text)
      assert.equal(keptText(lists[0] as object, first), text)
    }
  const kept = records.flatMap((record) => lists.filter((list) => keptText(list, record) !== undefined)).length * size
  assert.ok(kept >= 30 * mebibyte && kept <= 64 * mebibyte, `${kept}`)
})

it('a kept text of other characters than ASCII counts twice', () => {
  const list = {}
  const records = texts(10_000)
  for (const record of records) keepText(list, record, `${'x'.repeat(size - 1)}€`)
  const kept = records.filter((record) => keptText(list, record) !== undefined).length * size
  assert.ok(kept >= 15 * mebibyte && kept <= 33 * mebibyte, `${kept}`)
})

it('a long item is not kept, and a page is', () => {
  const list = {}
  const [item, page] = texts(2) as [object, object]
  keepText(list, item, 'x'.repeat(size + 1))
  keepText(list, page, Buffer.alloc(mebibyte))
  assert.equal(keptText(list, item), undefined)
  assert.equal(keptText<Buffer>(list, page)?.length, mebibyte)
})
