// Captures whose node does not respond: the image has a note with the command to give up, and fails after an hour. Captures
// whose request was interrupted wait for it to be repeated.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startService, type TestService } from '../../test/support/rigs/service.ts'
import { addImage, type NodeStandIn, startNode, startScheduler } from '../../test/support/stand-ins/node.ts'
import { timestamp } from '../platform/clock.ts'
import { lostNodeSeconds } from '../rules/retention.ts'
import type { ImageRecord } from '../store/records/fleet-records.ts'
import { changeNode } from '../store/records/vms.ts'
import { settleOnce } from './settle-captures.ts'

const here = '/api/v1/namespaces/svc-default'
let service: TestService
let scheduler: AsyncDisposable
let node: NodeStandIn

before(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  node = await startNode(service, {
    name: 'far',
    report: { architecture: 'arm64' },
    react: ({ generation, power }) => ({ generation, power, diskGb: 1 }) as never,
  })
  await addImage(service, 'base', 'arm64')
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const image = (name: string): ImageRecord | undefined => service.services.collections.images.get('', name)?.value
const post = async (path: string, body: object): Promise<void> => {
  const answer = await service.call('POST', `${here}/${path}`, { body })
  assert.ok(answer.status < 300, answer.text)
}
/** As the controller mark-nodes does. */
const mark = (isReady: boolean) =>
  changeNode(service.services.collections, 'far', (record) => ({
    ...record,
    isReady,
    lastSeenAt: timestamp(service.clock.now()),
  }))
const captures = () => service.services.collections.vms.get('svc-default', 'demo')?.value.captures?.length

describe('nodes that do not answer', () => {
  it('images that wait for a node that does not respond name it and the command to give up, until it returns', async () => {
    await post('vms', { name: 'demo', image: 'base', cpu: 1 })
    await post('vms/demo/save', { imageName: 'saved' })
    await post('vms/demo/commit', {})
    await mark(false)
    assert.equal(await settleOnce(service.services), 0)
    const { body } = await service.call('GET', `${here}/images/saved`)
    assert.equal(body.description, 'Saved from VM demo in namespace svc-default.')
    assert.deepEqual([body.state, body.progress], ['Updating', { percent: 0, bytes: 0 }])
    assert.equal(
      body.errorMessage,
      'Node far has not responded since 2026-11-15T09:00:00Z. The save continues when it is back and is given up at 2026-11-15T10:00:00Z. To give up now: svc3 image delete saved',
    )
    assert.match(image('base')?.errorMessage ?? '', /: svc3 vm delete demo -n svc-default --force$/)
    const { rev } = service.services.collections.images.get('', 'saved') ?? {}
    assert.equal(await settleOnce(service.services), 0)
    assert.equal(service.services.collections.images.get('', 'saved')?.rev, rev, 'it is said once')
    // The node reports progress, or only reconnects.
    const url = `/api/v1/agent/captures/${image('saved')?.capture?.id}/progress`
    const told = await service.call('POST', url, { token: node.token, body: { percent: 5, bytes: 1 } })
    assert.deepEqual([told.status, image('saved')?.errorMessage], [200, undefined], told.text)
    await mark(true)
    await settleOnce(service.services)
    assert.deepEqual([image('saved')?.errorMessage, image('base')?.errorMessage], [undefined, undefined])
    assert.deepEqual([image('saved')?.state, image('base')?.state, captures()], ['Updating', 'Updating', 2])
  })

  it('after an hour without a response of the node, captures fail; a commit leaves the image unchanged', async () => {
    await mark(false)
    service.clock.nowMs += (lostNodeSeconds + 1) * 1_000
    assert.equal(await settleOnce(service.services, 60_000), 0, 'a server that just started waits for it')
    assert.equal(await settleOnce(service.services), 2)
    const reason = /^Node far has not responded since .*, before it had sent all of VM demo; try again/
    for (const name of ['saved', 'base']) assert.match(image(name)?.errorMessage ?? '', reason)
    assert.deepEqual([image('saved')?.state, image('base')?.state], ['Failed', undefined])
    assert.deepEqual([image('base')?.recipe, image('base')?.capture, captures()], ['base', undefined, undefined])
  })
})

describe('requests that a killed server left', () => {
  it('a save that a killed server began waits for its client, however long the next server took to start', async () => {
    // The token of this test is valid for an hour.
    service.clock.nowMs -= lostNodeSeconds * 1_000
    await mark(true)
    const headers = { 'idempotency-key': 'once' }
    const save = () => service.call('POST', `${here}/vms/demo/save`, { body: { imageName: 'cut' }, headers })
    assert.equal((await save()).status, 202)
    // The server was killed between its two writes: the image exists, and the VM's record has no capture.
    const { vms, answers } = service.services.collections
    const demo = vms.get('svc-default', 'demo') ?? assert.fail()
    const { captures: _, ...value } = demo.value
    await vms.update(demo, { ...value, desired: { ...value.desired, requestKey: undefined } })
    for (const entry of answers.list()) await answers.delete(entry)
    service.clock.nowMs += 120_000
    assert.equal(await settleOnce(service.services, 29_000), 0)
    assert.equal((await save()).status, 202)
    assert.deepEqual([image('cut')?.state, captures()], ['Updating', 1])
    assert.equal(await settleOnce(service.services, 31_000), 0, 'it goes on')
  })

  it('a save that a killed server began fails if it is not repeated', async () => {
    const { vms } = service.services.collections
    const demo = vms.get('svc-default', 'demo') ?? assert.fail()
    const { captures: _, ...value } = demo.value
    await vms.update(demo, value)
    assert.equal(await settleOnce(service.services, 31_000), 1)
    assert.match(image('cut')?.errorMessage ?? '', /^The server was interrupted before the save started; try again$/)
  })
})
