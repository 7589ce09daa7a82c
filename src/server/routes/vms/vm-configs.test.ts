// VM configurations over HTTP: updates replace all values, require permission, and are validated.
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { addImage } from '../../../../test/support/stand-ins/node.ts'

const configs = '/api/v1/namespaces/svc-default/vmconfigs'
let service: TestService

before(async () => {
  service = await startService()
  await addImage(service, 'intel', 'amd64')
  await addImage(service, 'sonoma', 'arm64')
})
after(() => service[Symbol.asyncDispose]())

it('an update of a VM configuration replaces its values, and keeps its owner and creation time', async () => {
  const body = { name: 'build', image: 'intel', cpu: 6, memory: 8, tag: 'ios', tagRequired: true }
  const made = (await service.call('POST', configs, { body })).body
  const answer = await service.call('PUT', `${configs}/build`, { body: { image: 'sonoma', cpu: 4 } })
  assert.equal(answer.status, 200, answer.text)
  const { image, type, cpu, memory, tag, tagRequired, owner, createdAt } = answer.body
  assert.deepEqual([image, type, cpu, memory, tag, tagRequired], ['sonoma', 'arm64', 4, 0, undefined, false])
  assert.deepEqual([owner, createdAt], [made.owner, made.createdAt])
  assert.deepEqual((await service.call('GET', `${configs}/build`)).body, answer.body)
})

const refused: Readonly<Record<string, readonly [status: number, name: string, body: object]>> = {
  'a configuration that is not there': [404, 'other', { image: 'intel' }],
  'an image that is not there': [404, 'kept', { image: 'nothing' }],
  'no image': [400, 'kept', { cpu: 2 }],
  'an ISO on arm64': [422, 'kept', { image: 'sonoma', iso: 'disc.iso' }],
}
for (const [what, [status, name, body]] of Object.entries(refused))
  it(`an update of a VM configuration is refused and changes nothing: ${what}`, async () => {
    await service.call('POST', configs, { body: { name: 'kept', image: 'intel', cpu: 6 } })
    const before = (await service.call('GET', `${configs}/kept`)).body
    const answer = await service.call('PUT', `${configs}/${name}`, { body })
    assert.equal(answer.status, status, answer.text)
    assert.deepEqual((await service.call('GET', `${configs}/kept`)).body, before)
  })

it('a VM configuration that changes while it is being deleted is deleted', async (t) => {
  await service.call('POST', configs, { body: { name: 'short', image: 'intel', cpu: 6 } })
  const { store, collections } = service.services
  const remove = store.delete.bind(store)
  const method = t.mock.method(store, 'delete', async (...asked: Parameters<typeof remove>) => {
    method.mock.restore()
    assert.equal((await service.call('PUT', `${configs}/short`, { body: { image: 'intel', cpu: 4 } })).status, 200)
    return remove(...asked)
  })
  const deleted = await service.call('DELETE', `${configs}/short`)
  assert.equal(deleted.status, 200, deleted.text)
  assert.equal(collections.vmConfigs.get('svc-default', 'short'), undefined)
})
