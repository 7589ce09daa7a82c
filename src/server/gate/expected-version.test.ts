// Compare-and-set with the resourceVersion that a caller saw, on every operation whose body takes one.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'

const space = '/api/v1/namespaces/svc-default'
const subjects = `${space}/rolebindings/svc-dev/subjects`
let service: TestService
let scheduler: AsyncDisposable

before(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  await startNode(service, {})
  const config = { image: 'intel', name: 'ios' }
  assert.equal((await service.call('POST', `${space}/vmconfigs`, { body: config })).status, 201)
  const pool = { config: 'ios', name: 'warm', minIdle: 0, maxIdle: 1 }
  assert.equal((await service.call('POST', `${space}/pools`, { body: pool })).status, 201)
  const vm = { image: 'intel', name: 'demo' }
  assert.equal((await service.call('POST', `${space}/vms`, { body: vm })).status, 201)
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

describe('a change with a resourceVersion that is not current', () => {
  const changes: readonly (readonly [string, object, method?: string])[] = [
    ['vmconfigs/ios', { image: 'intel', cpu: 4 }, 'PUT'],
    ['pools/warm', { paused: true }, 'PUT'],
    ['nodes/node-1/tag', { tag: 'x' }],
    ['nodes/node-1/untag', { tag: 'x' }],
    ['nodes/node-1/namespace', { namespace: 'svc-default' }],
    ['nodes/node-1/cordon', {}],
    ['nodes/node-1/uncordon', {}],
    ['nodes/node-1/drain', {}],
    ['images/intel/description', { description: 'x' }],
    ['vms/demo/exec', { command: 'stop' }],
    ['vms/demo/resize', { size: 500 }],
    ['vms/demo/extend', { ttl: '1h' }],
    ['vms/demo/save', { imageName: 'saved' }],
    ['vms/demo/commit', {}],
    ['vms/demo/push', { imageReference: 'ghcr.io/a/b:c' }],
    ['rolebindings/svc-dev/subjects/add', { users: ['ana@example.com'] }],
  ]
  for (const [path, body, method = 'POST'] of changes)
    it(`a change with a resourceVersion that is not current is refused: ${path}`, async () => {
      const answer = await service.call(method, `${space}/${path}`, { body: { ...body, resourceVersion: '1' } })
      assert.deepEqual([answer.status, answer.body.reason], [409, 'Conflict'], answer.text)
    })

  it('a change with a resourceVersion that is not current changes nothing', async () => {
    const { body: vm } = await service.call('GET', `${space}/vms/demo`)
    assert.deepEqual([vm.powerState, vm.operation, vm.expiresAt], ['running', undefined, undefined])
    assert.equal((await service.call('GET', `${space}/vmconfigs/ios`)).body.cpu, 3)
    assert.equal((await service.call('GET', `${space}/pools/warm`)).body.paused, false)
    assert.equal((await service.call('GET', `${space}/images/saved`)).status, 404)
    assert.deepEqual((await service.call('GET', subjects)).body.items, [])
  })
})

it('a change with the current resourceVersion is made, and of two concurrent changes exactly one', async () => {
  const image = (await service.call('GET', `${space}/images/intel`)).body
  const body = { description: 'seen', resourceVersion: image.resourceVersion }
  assert.equal((await service.call('POST', `${space}/images/intel/description`, { body })).body.description, 'seen')

  await service.call('POST', `${subjects}/add`, { body: { users: ['ana@example.com'] } })
  const [{ resourceVersion }] = (await service.call('GET', `${space}/rolebindings`)).body.items
  const both = await Promise.all(
    ['bo@example.com', 'cy@example.com'].map((user) =>
      service.call('POST', `${subjects}/add`, { body: { users: [user], resourceVersion } }),
    ),
  )
  assert.deepEqual(both.map(({ status }) => status).toSorted(), [200, 409])
  assert.equal((await service.call('GET', subjects)).body.items.length, 2)
})
