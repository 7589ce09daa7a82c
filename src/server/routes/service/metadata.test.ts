// Labels and annotations of a record: what a request names is replaced, what it omits stays.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { vmRecord } from '../../../../bench/records.ts'
import { startService } from '../../../../test/support/rigs/service.ts'
import { addImage, startNode } from '../../../../test/support/stand-ins/node.ts'

const ns = '/api/v1/namespaces/svc-default'

describe('metadata of a record', () => {
  it('metadata of a record that a request omits is unchanged', async () => {
    await using service = await startService()
    await service.services.collections.vms.create('svc-default', 'demo', { ...vmRecord(0), name: 'demo' })
    await addImage(service, 'sonoma', 'arm64')
    for (const record of ['vms/demo', 'images/sonoma']) {
      const put = async (body: object) => (await service.call('PUT', `${ns}/metadata/${record}`, { body })).body
      const annotations = { 'example.com/ticket': 'IOS-42' }
      await put({ labels: { team: 'web' }, annotations })
      const relabelled = await put({ labels: { team: 'ios' } })
      assert.deepEqual([relabelled.labels, relabelled.annotations], [{ team: 'ios' }, annotations], record)
      const bare = await put({ annotations: {} })
      assert.deepEqual([bare.labels, bare.annotations], [{ team: 'ios' }, {}], record)
    }
    const shown = await service.call('GET', `${ns}/vms/demo`)
    assert.deepEqual(shown.body.labels, { team: 'ios' })
    const refused = await service.call('PUT', `${ns}/metadata/vms/demo`, { body: { labels: { '=': 'x' } } })
    assert.equal(refused.status, 422)
    assert.equal((await service.call('PUT', `${ns}/metadata/vms/demo`, { body: {} })).status, 400)
  })

  it('metadata of a VM keeps the labels of svc3, which users cannot set', async () => {
    await using service = await startService()
    const [own, other] = [{ 'svc3/runner-pool': 'ci' }, { 'svc3/runner-pool': 'web' }]
    for (const [name, labels] of [
      ['runner', own],
      ['mine', {}],
    ] as const)
      await service.services.collections.vms.create('svc-default', name, { ...vmRecord(0), name, labels })
    const put = async (name: string, labels: object) => {
      const { status, body } = await service.call('PUT', `${ns}/metadata/vms/${name}`, { body: { labels } })
      return [status, body.labels ?? body.details.causes[0].message]
    }
    const refusal = [422, 'label "svc3/runner-pool": labels beginning with svc3/ are set by svc3']
    assert.deepEqual(await put('runner', { ...own, team: 'ios' }), [200, { ...own, team: 'ios' }])
    assert.deepEqual(await put('runner', other), refusal)
    assert.deepEqual(await put('mine', own), refusal)
  })

  it('metadata of a record is changed only if it has the expected version', async () => {
    await using service = await startService()
    await service.services.collections.vms.create('svc-default', 'demo', { ...vmRecord(0), name: 'demo' })
    await addImage(service, 'sonoma', 'arm64')
    for (const [record, name] of [
      ['vms/demo', 'VM demo'],
      ['images/sonoma', 'Image sonoma'],
      ['namespaces/svc-default', 'Namespace svc-default'],
    ]) {
      const put = (body: object) => service.call('PUT', `${ns}/metadata/${record}`, { body })
      const { resourceVersion } = (await put({ labels: { team: 'ios' } })).body
      const first = await put({ labels: { team: 'web' }, resourceVersion })
      assert.equal(first.status, 200, first.text)
      const late = await put({ labels: {}, resourceVersion })
      assert.deepEqual([late.status, late.body.reason], [409, 'Conflict'], record)
      assert.ok(late.body.message.startsWith(`${name} changed`), late.body.message)
      assert.deepEqual((await put({ annotations: {} })).body.labels, { team: 'web' })
    }
  })

  it('metadata of an unknown kind, also one named like a property of Object, is not found', async () => {
    await using service = await startService()
    for (const kind of ['constructor', '__proto__', 'toString', 'nothing']) {
      const { status, body } = await service.call('PUT', `${ns}/metadata/${kind}/x`, { body: { labels: {} } })
      assert.deepEqual([status, body.message], [404, `${kind} x not found in svc-default`])
    }
  })

  it('metadata that is for administrators: others get the same refusal whether the record exists or not', async () => {
    await using service = await startService()
    assert.equal((await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-blue' } })).status, 201)
    await startNode(service, {})
    const put = (record: string, token: string) =>
      service.call('PUT', `${ns}/metadata/${record}`, { token, body: { labels: {}, resourceVersion: '1' } })
    for (const record of ['namespaces/svc-blue', 'namespaces/svc-none', 'nodes/node-1', 'nodes/node-2']) {
      const { status, body } = await put(record, service.devToken)
      const [kind] = record.split('/')
      const message = `Forbidden: only administrators change labels and annotations of ${kind}`
      assert.deepEqual([status, body.message], [403, message], record)
    }
    assert.equal((await put('namespaces/svc-blue', service.adminToken)).status, 409)
  })
})
