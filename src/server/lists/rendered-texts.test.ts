// The limit of the rendered texts that are kept.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { keepText, keptText } from './rendered-texts.ts'

const mebibyte = 2 ** 20

it('rendered texts are kept up to 64 MiB in all, those first that were used last', () => {
  const lists = [{}, {}]
  const records = Array.from({ length: 400 }, () => ({}))
  const [first] = records as [object]
  const text = 'x'.repeat(mebibyte)
  for (const record of records)
    for (const list of lists) {
      keepText(list, record, text)
      assert.equal(keptText(lists[0] as object, first), text)
    }
  const kept = records.flatMap((record) => lists.filter((list) => keptText(list, record) !== undefined))
  assert.ok(kept.length >= 30 && kept.length <= 64, `${kept.length}`)
})

it('a kept text of other characters than ASCII counts twice', () => {
  const list = {}
  const records = Array.from({ length: 200 }, () => ({}))
  for (const record of records) keepText(list, record, `${'x'.repeat(mebibyte)}€`)
  const kept = records.filter((record) => keptText(list, record) !== undefined)
  assert.ok(kept.length >= 15 && kept.length <= 32, `${kept.length}`)
})
