// The log of a push job, as `kubectl logs` reads it.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type KubernetesRig, startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { nothingYet, type PushJobRecord } from '../../store/records/push-jobs.ts'

const pods = '/api/v1/namespaces/orka-default/pods'
const job: PushJobRecord = {
  name: 'push-1',
  namespace: 'svc-default',
  vm: 'demo',
  vmUid: 'uid-1',
  image: 'ghcr.io/team/demo:v1',
  owner: 'admin@example.com',
  capture: 'capture-1',
  status: 'Running',
  progress: nothingYet,
  startedAt: '2026-11-17T09:00:00Z',
}

let service: TestService
let kube: KubernetesRig

beforeEach(async () => {
  service = await startService()
  kube = startKubernetes(service)
  await service.services.collections.pushJobs.create('svc-default', job.name, job)
})
afterEach(async () => {
  await kube[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const change = (more: Partial<PushJobRecord>): Promise<unknown> => {
  const { pushJobs } = service.services.collections
  const { key = '' } = pushJobs.get('svc-default', job.name) ?? {}
  return pushJobs.change(key, (record) => record && { ...record, ...more })
}
/** Resolves once the log is open. */
const follow = async () => {
  const answer = kube.call('GET', `${pods}/push-1/log?follow=true`)
  await eventually(() => assert.equal(service.services.metrics.watches.open, 1))
  return { answer }
}
const started = '2026-11-17T09:00:00Z Pushing VM demo to ghcr.io/team/demo:v1'

describe('the log of a push job', () => {
  it('the log has all lines, or the last ones', async () => {
    const { text, headers } = await kube.call('GET', `${pods}/push-1/log?container=push`)
    assert.equal(text, `${started}\nRunning, 0% (0 of 0 bytes)\n`)
    assert.match(String(headers['content-type']), /^text\/plain/)
    assert.equal((await kube.call('GET', `${pods}/push-1/log?tailLines=1`)).text, 'Running, 0% (0 of 0 bytes)\n')
    assert.equal((await kube.call('GET', `${pods}/push-1/log?tailLines=0`)).text, '')
    assert.equal((await kube.call('GET', `${pods}/none/log?follow=true`)).status, 404)
    assert.equal((await kube.call('GET', `${pods}/push-1/log?follow=maybe`)).status, 400)
  })

  it('with follow, each line arrives once, and the log ends with the job', async () => {
    const following = await follow()
    await service.services.collections.pushJobs.create('svc-default', 'other', { ...job, name: 'other' })
    await change({ progress: { ...nothingYet, bytesTotal: 4, bytesDone: 2, percent: 50 } })
    await change({ owner: 'someone-else@example.com' })
    await change({ status: 'Succeeded', digest: 'sha256:1', finishedAt: '2026-11-17T09:01:00Z' })
    const lines = (await following.answer).text.trimEnd().split('\n')
    assert.deepEqual(lines, [
      started,
      'Running, 0% (0 of 0 bytes)',
      'Running, 50% (2 of 4 bytes)',
      'Succeeded, 50% (2 of 4 bytes)',
      'Digest sha256:1',
    ])
    assert.equal((await kube.call('GET', `${pods}/push-1/log?follow=true`)).text.split('\n').length, 4)
  })

  it('the log of a job is followed although the store no longer has the change that wrote it', async () => {
    const { pushJobs } = service.services.collections
    await pushJobs.create('svc-default', 'other', { ...job, name: 'other' })
    await service.services.store.compact(pushJobs.view.rev)
    const following = await follow()
    await change({ status: 'Succeeded', digest: 'sha256:1', finishedAt: '2026-11-17T09:01:00Z' })
    assert.match((await following.answer).text, /Digest sha256:1\n$/)
  })

  it('deleting the job ends its log', async () => {
    const following = await follow()
    const { pushJobs } = service.services.collections
    await change({ phase: 'Packing' })
    const entry = pushJobs.get('svc-default', job.name)
    await pushJobs.delete(entry ?? assert.fail())
    assert.match((await following.answer).text, /Running: Packing/)
  })

  it('reading a log needs the permission to list push jobs', async () => {
    const elsewhere = '/api/v1/namespaces/svc-closed/pods/push-1/log?follow=true'
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-closed' } })
    assert.equal((await kube.call('GET', elsewhere, { token: service.devToken })).status, 403)
  })
})
