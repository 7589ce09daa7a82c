// What a store that measures another one must forward.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { measured } from './measured.ts'
import { openMemory } from './memory.ts'
import { PreconditionFailed } from './store.ts'

it('a store that is measured forwards the preconditions of writes', async (test) => {
  const store = openMemory()
  test.after(() => store.close())
  const wrapped = measured(store, () => undefined)
  const base = await store.create('/base', 1)
  const { rev } = await wrapped.create('/a', { name: 'a' }, [base])
  const updated = await wrapped.update('/a', { name: 'b' }, rev, [base])
  await store.update('/base', 2, base.rev)
  await assert.rejects(wrapped.create('/b', { name: 'b' }, [base]), PreconditionFailed)
  await assert.rejects(wrapped.update('/a', { name: 'c' }, updated.rev, [base]), PreconditionFailed)
  assert.deepEqual(await store.get('/a'), updated)
})
