// The capacity that runner pools announce: bounded by maximum, quota and free nodes, shared, and 0 only during deletion.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode } from '../../../test/support/stand-ins/node.ts'
import { Rooms } from '../scheduling/rooms.ts'
import { capacities } from './capacity.ts'

const base = '/api/v1/namespaces/svc-default'

describe('the capacity that runner pools announce', () => {
  let service: TestService
  let token: string
  before(async () => {
    service = await startService()
    token = await service.tokenFor({ kind: 'user', name: 'admin@example.com', admin: true })
    await startNode(service)
    await addImage(service, 'tiny-amd64', 'amd64')
    await call('POST', '/vmconfigs', { name: 'small', image: 'tiny-amd64', cpu: 1, memory: 0.5 })
    await call('POST', '/vmconfigs', { name: 'huge', image: 'tiny-amd64', cpu: 64, memory: 0.5 })
  })
  after(() => service?.[Symbol.asyncDispose]())

  const call = async (method: string, url: string, body?: object): Promise<void> => {
    const answer = await service.call(method, base + url, { token, ...(body && { body }) })
    assert.ok(answer.status < 300, answer.text)
  }
  const create = (name: string, max: number, config = 'small') =>
    call('POST', '/runnerpools', { name, max, config, url: 'http://127.0.0.1:2/acme', credential: { token: 'ghp' } })
  const announced = (): Record<string, number> => {
    const { collections, presence } = service.services
    const by = capacities(collections, new Rooms(collections, presence))
    return Object.fromEntries(
      collections.runnerPools.list().map(({ value: { name, uid } }) => [name, by.get(uid) ?? -1]),
    )
  }

  it('is bounded by the maximum and by the free capacity of nodes', async () => {
    await create('a', 3)
    assert.deepEqual(announced(), { a: 3 })
    await call('PUT', '/runnerpools/a', { max: 100 })
    assert.deepEqual(announced(), { a: 8 })
  })

  it('is shared by pools on the same nodes, and at least 1', async () => {
    await create('b', 100)
    assert.deepEqual(announced(), { a: 4, b: 4 })
    await call('PUT', '/runnerpools/b', { max: 1 })
    assert.deepEqual(announced(), { a: 7, b: 1 })
    await create('c', 5, 'huge')
    assert.deepEqual(announced(), { a: 7, b: 1, c: 1 })
  })

  it('is bounded by the quota of the namespace', async () => {
    await call('PUT', '/quota', { vms: 4 })
    assert.deepEqual(announced(), { a: 3, b: 1, c: 1 })
    await call('PUT', '/quota', { vms: 0 })
    assert.deepEqual(announced(), { a: 1, b: 1, c: 1 })
    await call('PUT', '/quota', { unlimited: ['vms'] })
  })

  it('is 1 for a paused pool, whose share other pools get, and 0 only for one that is being deleted', async () => {
    await call('PUT', '/runnerpools/b', { paused: true })
    assert.deepEqual(announced(), { a: 8, b: 1, c: 1 })
    await call('DELETE', '/runnerpools/b')
    assert.deepEqual(announced(), { a: 8, b: 0, c: 1 })
  })
})
