// Dry runs are refused as the change would be, and write nothing.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openMemory } from './memory.ts'
import { openCollections } from './records/collections.ts'
import { rehearse } from './rehearsal.ts'

const record = { name: 'svc-a', customPods: false, createdAt: '2026-11-15T09:00:00Z' }

describe('a dry run', () => {
  it('ends before the first write, and returns it', async () => {
    await using collections = await openCollections(openMemory())
    const { namespaces } = collections
    const written = await rehearse(() => namespaces.create('', 'svc-a', record))
    assert.deepEqual(written, { key: namespaces.key('', 'svc-a'), value: record })
    assert.equal(namespaces.get('', 'svc-a'), undefined)
    const entry = await namespaces.create('', 'svc-a', record)
    assert.equal((await rehearse(() => namespaces.delete(entry)))?.value, undefined)
    const changed = await rehearse(() =>
      namespaces.change(entry.key, (value) => ({ ...(value ?? record), customPods: true })),
    )
    assert.deepEqual(changed?.value, { ...record, customPods: true })
    assert.equal(namespaces.get('', 'svc-a')?.rev, entry.rev)
  })

  it('is refused if the name is taken, and returns nothing if nothing would be written', async () => {
    await using collections = await openCollections(openMemory())
    await collections.namespaces.create('', 'svc-a', record)
    await assert.rejects(() => rehearse(() => collections.namespaces.create('', 'svc-a', record)), {
      fault: 'AlreadyExists',
    })
    assert.equal(await rehearse(async () => 'read'), undefined)
  })
})
