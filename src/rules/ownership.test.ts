// Ownership: who may delete what (docs/spec.md R14), what callers may know of other namespaces, and namespaces without VMs.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import {
  type Caller,
  isOwnerOrMember,
  mayDelete,
  maySee,
  reasonAgainstChangingImage,
  takesVms,
  vmsElsewhere,
} from './ownership.ts'

it('developers delete their own, administrators everything, others nothing', () => {
  assert.ok(mayDelete('dev', 'ana@example.com', 'ana@example.com'))
  assert.ok(!mayDelete('dev', 'ana@example.com', 'bo@example.com'))
  assert.ok(mayDelete('admin', 'root@example.com', 'bo@example.com'))
  assert.ok(!mayDelete('none', 'ana@example.com', 'ana@example.com'))
})

const developer = (name: string, ...namespaces: string[]): Caller => ({
  name,
  roleIn: (namespace) => (namespace !== undefined && namespaces.includes(namespace) ? 'dev' : 'none'),
})
const admin: Caller = { name: 'root@example.com', roleIn: () => 'admin' }

it('an image is changed by its owner, people of its namespace and administrators; a protected one by the last alone', () => {
  const image = { owner: 'ana@example.com', sourceNamespace: 'svc-a', isProtected: false }
  const callers = [
    developer('ana@example.com'),
    developer('bo@example.com', 'svc-a'),
    developer('bo@example.com', 'svc-b'),
    admin,
  ]
  const judged = (change: object) =>
    callers.map((caller) => reasonAgainstChangingImage(caller, { ...image, ...change }))
  assert.deepEqual(judged({}), [undefined, undefined, 'foreign', undefined])
  assert.deepEqual(judged({ sourceNamespace: undefined }), [undefined, 'foreign', 'foreign', undefined])
  assert.deepEqual(judged({ isProtected: true }), ['protected', 'protected', 'protected', undefined])
  assert.deepEqual(
    callers.map((caller) => isOwnerOrMember(caller, image)),
    [true, true, false, true],
  )
})

it('names in a namespace are for its people and administrators; others get a count', () => {
  assert.deepEqual([maySee(developer('x', 'svc-a'), 'svc-a'), maySee(developer('x', 'svc-a'), 'svc-b')], [true, false])
  assert.deepEqual([maySee(developer('x', 'svc-a'), undefined), maySee(admin, undefined)], [false, true])
  assert.deepEqual([vmsElsewhere(1), vmsElsewhere(2)], ['1 VM in another namespace', '2 VMs in other namespaces'])
})

it('a namespace for custom pods takes no VMs', () => {
  assert.ok(takesVms({ customPods: false }))
  assert.ok(!takesVms({ customPods: true }))
})
