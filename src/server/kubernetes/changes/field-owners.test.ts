// Managers of fields: updates, applies, conflicts, and properties of random changes.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ApiError } from '../../../api/errors.ts'
import type { ManagedFields } from '../../../store/records/record-meta.ts'
import { applied, type Manager, readManagedFields, updated } from './field-owners.ts'
import { decoded, encoded, type FieldShape, merged, pathText, valuesOf, withoutPaths } from './field-paths.ts'

const shape: FieldShape = {
  properties: {
    metadata: {
      properties: {
        labels: { patternProperties: { '': {} } },
        finalizers: { 'x-kubernetes-list-type': 'set' },
        ownerReferences: { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['uid'] },
      },
    },
    spec: { properties: { cpu: {}, image: {}, tags: { 'x-kubernetes-list-type': 'set' }, subjects: { items: {} } } },
  },
}
const time = '2026-11-17T12:00:00Z'
const by = (manager: string): Manager => ({ manager, apiVersion: 'v1', time })
const apply = (entries: readonly ManagedFields[], live: unknown, config: unknown, manager: string, isForced = false) =>
  applied(entries, { live, config, shape, by: by(manager), isForced })
const update = (entries: readonly ManagedFields[], before: unknown, after: unknown, manager: string) =>
  updated(entries, { before, after, shape, by: by(manager) })
const ownedBy = (entries: readonly ManagedFields[], manager: string): string[] =>
  entries
    .filter((entry) => entry.manager === manager)
    .flatMap(({ fieldsV1 }) => [...decoded(fieldsV1)].map(pathText))
    .toSorted()

describe('managers of fields', () => {
  it('an apply takes the fields that it names, and removes those that it no longer names', () => {
    const one = apply([], {}, { spec: { cpu: 4, tags: ['a', 'b'] } }, 'git')
    assert.deepEqual(ownedBy(one.managedFields, 'git'), ['.spec.cpu', '.spec.tags["a"]', '.spec.tags["b"]'])
    const two = apply(one.managedFields, one.object, { spec: { tags: ['b'] } }, 'git')
    assert.deepEqual(two.object, { spec: { tags: ['b'] } })
    assert.deepEqual(ownedBy(two.managedFields, 'git'), ['.spec.tags["b"]'])
  })

  it('a field with another manager stays when one manager gives it up', () => {
    const one = apply([], {}, { spec: { cpu: 4 } }, 'a')
    const two = apply(one.managedFields, one.object, { spec: { cpu: 4, image: 'x' } }, 'b')
    const three = apply(two.managedFields, two.object, { spec: {} }, 'a')
    assert.deepEqual(three.object, { spec: { cpu: 4, image: 'x' } })
    assert.deepEqual(ownedBy(three.managedFields, 'a'), [])
  })

  it('an apply of fields of other managers is a conflict with the message that kubectl knows, unless forced', () => {
    const entries = update([], {}, { spec: { cpu: 4, image: 'x' } }, 'kubectl')
    const live = { spec: { cpu: 4, image: 'x' } }
    const refused = (config: unknown, message: string): void =>
      assert.throws(
        () => apply(entries, live, config, 'git'),
        (error) => {
          assert.ok(error instanceof ApiError)
          assert.equal(error.reason, 'Conflict')
          assert.equal(error.message, message)
          assert.equal(error.options.causes?.[0]?.reason, 'FieldManagerConflict')
          assert.equal(error.options.causes?.[0]?.field, '.spec.cpu')
          return true
        },
      )
    const other = `"kubectl" using v1 at ${time}`
    refused({ spec: { cpu: 8 } }, `Apply failed with 1 conflict: conflict with ${other}: .spec.cpu`)
    refused(
      { spec: { cpu: 8, image: 'y' } },
      `Apply failed with 2 conflicts: conflicts with ${other}:\n- .spec.cpu\n- .spec.image`,
    )
    const forced = apply(entries, live, { spec: { cpu: 8 } }, 'git', true)
    assert.deepEqual(ownedBy(forced.managedFields, 'git'), ['.spec.cpu'])
    assert.deepEqual(ownedBy(forced.managedFields, 'kubectl'), ['.spec.image'])
  })

  it('kubectl takes over only the fields of its last client-side apply', () => {
    const live = { spec: { cpu: 4, image: 'x' } }
    const entries = update([], {}, live, 'kubectl-client-side-apply')
    const as = (manager: string, config: object, lastApplied: object) =>
      applied(entries, { live, config, shape, by: by(manager), isForced: false, lastApplied })
    const { object } = as('kubectl', { spec: { cpu: 8 } }, live)
    assert.deepEqual(object, { spec: { cpu: 8, image: 'x' } })
    assert.throws(() => as('git', { spec: { cpu: 8 } }, live), /conflict with "kubectl-client-side-apply"/)
    assert.throws(() => as('kubectl', { spec: { cpu: 8 } }, { spec: { cpu: 2 } }), /1 conflict/)
  })

  it('fields without a manager belong to the placeholder before-first-apply', () => {
    assert.throws(() => apply([], { spec: { cpu: 4 } }, { spec: { cpu: 8 } }, 'git'), /"before-first-apply"/)
    const { managedFields } = apply([], { spec: { cpu: 4 } }, { spec: { cpu: 4 } }, 'git')
    assert.deepEqual(managedFields.map(({ manager }) => manager).toSorted(), ['before-first-apply', 'git'])
  })

  it('an update takes the fields that it changes from all managers', () => {
    const { managedFields, object } = apply([], {}, { metadata: { labels: { a: '1', b: '1' } } }, 'git')
    const after = { metadata: { labels: { a: '2' } } }
    const entries = update(managedFields, object, after, 'kubectl-label')
    assert.deepEqual(ownedBy(entries, 'kubectl-label'), ['.metadata.labels.a'])
    assert.deepEqual(ownedBy(entries, 'git'), [])
    assert.equal(update(entries, after, after, 'other'), entries)
  })

  it('at most ten updating managers are kept apart', () => {
    let entries: readonly ManagedFields[] = []
    for (let index = 0; index < 30; index++)
      entries = update(
        entries,
        { metadata: { labels: {} } },
        { metadata: { labels: { [`l${index}`]: 'x' } } },
        `m${index}`,
      )
    assert.equal(entries.length, 10)
    assert.equal(ownedBy(entries, 'ancient-changes').length, 21)
  })

  it('entries of clients are decoded once, however often their request is tried', () => {
    let reads = 0
    const entry = {
      manager: 'a',
      operation: 'Apply',
      get fieldsV1() {
        reads += 1
        return { 'f:spec': {} }
      },
    }
    const [first, second] = [readManagedFields([entry], 'v1', time), readManagedFields([entry], 'v1', time)]
    assert.deepEqual([reads, second], [1, first])
  })

  it('entries of clients are read, and invalid ones refused', () => {
    const entry = { manager: 'a', operation: 'Apply', fieldsV1: { 'f:spec': { '.': {}, 'f:cpu': {} } } }
    assert.deepEqual(ownedBy(readManagedFields([entry], 'v1', time), 'a'), ['.spec.cpu'])
    assert.deepEqual(readManagedFields([{}], 'v1', time), [])
    for (const bad of [
      'x',
      [{ ...entry, manager: '' }],
      [{ ...entry, operation: 'Write' }],
      [{ ...entry, fieldsV1: { spec: {} } }],
      [{ ...entry, fieldsV1: 'x' }],
      Array.from({ length: 65 }, () => entry),
    ])
      assert.throws(() => readManagedFields(bad, 'v1', time), ApiError)
  })

  const labels = fc.dictionary(fc.string({ maxLength: 3 }), fc.string({ maxLength: 2 }), { maxKeys: 4 })
  const owners = fc.uniqueArray(fc.record({ uid: fc.string({ maxLength: 2 }), name: fc.string({ maxLength: 2 }) }), {
    selector: ({ uid }) => uid,
    maxLength: 3,
  })
  const objects = fc.record(
    {
      metadata: fc.record({ labels, ownerReferences: owners }, { requiredKeys: [] }),
      spec: fc.record(
        {
          cpu: fc.integer({ min: 0, max: 3 }),
          tags: fc.uniqueArray(fc.string({ maxLength: 2 }), { maxLength: 4 }),
          subjects: fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 3 }),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  )

  it('paths survive encoding and decoding', () => {
    fc.assert(
      fc.property(objects, (object) => {
        const paths = new Set(valuesOf(object, shape).keys())
        assert.deepEqual(decoded(JSON.parse(JSON.stringify(encoded(paths)))), paths)
        assert.equal(valuesOf(withoutPaths(object, paths, shape), shape).size, 0)
      }),
    )
  })

  it('a merge has all fields of the patch, and the others of the object', () => {
    fc.assert(
      fc.property(objects, objects, (onto, from) => {
        const result = valuesOf(merged(onto, from, shape), shape)
        const [was, is] = [valuesOf(onto, shape), valuesOf(from, shape)]
        for (const [path, value] of is) assert.deepEqual(result.get(path), value)
        for (const [path, value] of was) if (!is.has(path)) assert.deepEqual(result.get(path), value)
        assert.equal(result.size, new Set([...was.keys(), ...is.keys()]).size)
      }),
    )
  })

  it('after a forced apply, its manager has exactly the fields that it named, with their values', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), objects, fc.boolean()), { maxLength: 6 }),
        (steps) => {
          let object: unknown = {}
          let entries: readonly ManagedFields[] = []
          for (const [manager, config, isUpdate] of steps) {
            if (isUpdate) {
              entries = update(entries, object, config, manager)
              object = config
            } else {
              const result = apply(entries, object, config, manager, true)
              ;({ object, managedFields: entries } = result)
              const there = valuesOf(object, shape)
              for (const [path, value] of valuesOf(config, shape)) assert.deepEqual(there.get(path), value)
            }
            // Every managed field exists.
            const there = valuesOf(object, shape)
            for (const { fieldsV1 } of entries) for (const path of decoded(fieldsV1)) assert.ok(there.has(path), path)
          }
        },
      ),
    )
  })
})
