// Events without a caller: one for each change, in its namespace.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { startService, type TestService } from '../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../test/support/stand-ins/node.ts'
import { eventually } from '../../test/support/tools/eventually.ts'
import type { DesiredVm } from '../api/nodes/agent.ts'
import { nothingYet, type PushJobRecord } from '../store/records/push-jobs.ts'
import { expireVms } from './expire-vms.ts'
import { recordEvents } from './record-events.ts'

let service: TestService
let stops: (() => Promise<void>)[]

beforeEach(async () => {
  service = await startService()
  const scheduler = startScheduler(service)
  const recorder = recordEvents(service.services)
  stops = [recorder.stop, () => scheduler[Symbol.asyncDispose]() as Promise<void>]
  await addImage(service, 'intel', 'amd64')
})
afterEach(async () => {
  for (const stop of stops) await stop()
  await service[Symbol.asyncDispose]()
})

const inDefault = '/api/v1/namespaces/svc-default'
const deploy = (body: object, query = '') =>
  service.call('POST', `${inDefault}/vms${query}`, { body: { image: 'intel', cpu: 1, ...body } })

interface Shown {
  readonly type: string
  readonly reason: string
  readonly message: string
  readonly actor: string
  readonly involved: { readonly kind: string; readonly name: string }
}
const events = async (kind: string, name: string): Promise<Shown[]> => {
  const selector = encodeURIComponent(`involved.kind=${kind},involved.name=${name}`)
  return (await service.call('GET', `${inDefault}/events?fieldSelector=${selector}`)).body.items
}
const told = (kind: string, name: string, expected: readonly string[]) =>
  eventually(async () => {
    const all = await events(kind, name)
    assert.deepEqual(all.map(({ message }) => message).toSorted(), expected.toSorted())
    return all
  })
const reasons = (all: readonly Shown[]): string[] => all.map(({ reason }) => reason)
const vm = (name: string) => {
  const found = service.services.collections.vms.get('svc-default', name)
  assert.ok(found)
  return found.value
}

describe('events of what happens without a caller', () => {
  it('system events record the life of a VM, beside requests of callers', async () => {
    const node = await startNode(service)
    await deploy({ name: 'demo' })
    await service.call('POST', `${inDefault}/vms/demo/exec`, { body: { command: 'stop' } })
    await service.call('POST', `${inDefault}/vms/demo/exec`, { body: { command: 'start' } })
    await node.say(vm('demo'), { generation: 3, power: 'failed', problem: 'QEMU ended with exit code 1' })
    // Repeated, as in every report.
    await node.say(vm('demo'), { generation: 3, power: 'failed', problem: 'QEMU ended with exit code 1' })
    await node.say(vm('demo'), { generation: 3, power: 'running' })
    await service.call('DELETE', `${inDefault}/vms/demo`)
    const all = await told('vms', 'demo', [
      'VM demo placed on node-1',
      'VM demo started on node-1',
      'admin@example.com requested VM demo (image intel)',
      'admin@example.com stopped VM demo',
      'admin@example.com started VM demo',
      'VM demo crashed on node-1: QEMU ended with exit code 1',
      'VM demo restarted on node-1',
      'admin@example.com deleted VM demo',
    ])
    assert.deepEqual(reasons(all).slice(0, 3), ['DeployVm', 'VmPlaced', 'VmStarted'])
    const crash = all.find(({ reason }) => reason === 'VmCrashed')
    assert.deepEqual([crash?.type, crash?.actor], ['Warning', 'system'])
    assert.ok(['DeployVm', 'StopVm', 'StartVm', 'DeleteVm'].every((each) => all.some(({ reason }) => reason === each)))
  })

  it('system events record deployments that fail, are late or expire', async () => {
    const fail = ({ generation, power, name }: DesiredVm) => {
      if (power === 'deleted') return { generation, power: 'removed' as const }
      if (name === 'slow') return undefined
      return name === 'good' ? { generation, power } : { generation, power: 'failed' as const, problem: 'No disk' }
    }
    await startNode(service, { react: fail })
    assert.equal((await deploy({ name: 'bad' })).status, 500)
    const bad = await told('vms', 'bad', [
      'admin@example.com requested VM bad (image intel)',
      'VM bad placed on node-1',
      'VM bad failed to deploy: No disk',
    ])
    assert.deepEqual(reasons(bad), ['DeployVm', 'VmPlaced', 'DeployFailed'])
    await deploy({ name: 'unwatched' }, '?wait=false')
    await told('vms', 'unwatched', [
      'admin@example.com requested VM unwatched (image intel)',
      'VM unwatched placed on node-1',
      'VM unwatched failed to deploy: No disk',
    ])
    assert.equal((await deploy({ name: 'slow', timeout: 0.005 })).status, 504)
    await told('vms', 'slow', [
      'admin@example.com requested VM slow (image intel)',
      'VM slow placed on node-1',
      'VM slow failed to deploy in time',
    ])
    assert.equal((await deploy({ name: 'never', image: 'none' })).status, 404)
    await told('vms', 'never', [])
    await deploy({ name: 'good', ttl: '20m' })
    service.clock.nowMs += 20 * 60_000
    const loop = expireVms(service.services)
    await told('vms', 'good', [
      'VM good placed on node-1',
      'VM good started on node-1',
      'admin@example.com requested VM good (image intel)',
      'VM good expired and is being deleted',
    ])
    await loop.stop()
  })

  it('system events record nodes: joined by which token, ready, lost and back', async () => {
    const node = await startNode(service)
    const { nodes } = service.services.collections
    const mark = async (isReady: boolean) => {
      const entry = nodes.get('', node.name)
      assert.ok(entry)
      await nodes.update(entry, { ...entry.value, isReady })
    }
    await mark(false)
    await node.report({ diskFreeGb: 100 })
    const all = await eventually(async () => {
      const found = await events('nodes', 'node-1')
      assert.equal(found.length, 4)
      return found
    })
    assert.deepEqual(
      all.map(({ reason }) => reason),
      ['JoinCluster', 'NodeReady', 'NodeLost', 'NodeReady'],
    )
    assert.match(all[0]?.message ?? '', /^Node node-1 joined svc-default with join token [0-9a-f]{8}$/)
    assert.deepEqual(
      all.slice(1).map(({ message }) => message),
      ['Node node-1 is ready', 'Node node-1 is not responding', 'Node node-1 is ready'],
    )
    const tokens = await events('namespaces', 'svc-default')
    const id = /token (\w+)$/.exec(all[0]?.message ?? '')?.[1]
    assert.ok(tokens.every(({ message }) => message.includes(`created join token ${id} for svc-default`)))
  })

  it('system events record pulled and saved images in the namespace of the request', async () => {
    const { images } = service.services.collections
    const at = '2026-11-15T09:00:00Z'
    const base = {
      description: '',
      architecture: 'amd64',
      sizeBytes: 1,
      owner: 'a',
      createdAt: at,
      updatedAt: at,
    } as const
    const pull = { reference: 'r', namespace: 'svc-ios', bytes: 1, sha256: 'x' } as const
    const capture = {
      id: 'c',
      kind: 'save',
      requestedAt: at,
      vm: { namespace: 'svc-default', name: 'demo', uid: 'u' },
    } as const
    const pulled = await images.create('', 'pulled', { ...base, name: 'pulled', state: 'Updating', pull })
    await images.update(pulled, { ...base, name: 'pulled' })
    const saved = await images.create('', 'saved', { ...base, name: 'saved', state: 'Updating', capture })
    await images.update(saved, { ...base, name: 'saved', state: 'Failed', errorMessage: 'The disk is full' })
    await told('images', 'saved', ['Failed to save image saved: The disk is full'])
    const { events: records } = service.services.collections
    await eventually(async () =>
      assert.deepEqual(
        records.list('svc-ios').map(({ value }) => value.message),
        ['Image pulled pulled'],
      ),
    )
    assert.deepEqual(await events('images', 'pulled'), [])
  })

  it('system events record a VM that powers off, and one that has to leave its node', async () => {
    const node = await startNode(service)
    await deploy({ name: 'demo' })
    await node.say(vm('demo'), { generation: 1, power: 'stopped' })
    await told('vms', 'demo', [
      'VM demo placed on node-1',
      'VM demo started on node-1',
      'admin@example.com requested VM demo (image intel)',
      'VM demo powered off on node-1',
    ])
    const { vms } = service.services.collections
    const { place, ...homeless } = { ...vm('demo'), name: 'moved', uid: 'another' }
    assert.ok(place)
    const desired = { ...homeless.desired, generation: 2 }
    const waiting = { ...homeless, desired, observed: { ...homeless.observed, hasRun: false } }
    const entry = await vms.create('svc-default', 'moved', waiting)
    await vms.update(entry, { ...waiting, place: { ...place, node: 'node-2' } })
    await told('vms', 'moved', ['VM moved rescheduled to node-2'])
  })

  it('system events record how pushes end, unless they were cancelled', async () => {
    const { pushJobs } = service.services.collections
    const at = '2026-11-15T09:00:00Z'
    const end = async (name: string, ended: { status: PushJobRecord['status']; errorMessage?: string }) => {
      const job = {
        name,
        namespace: 'svc-default',
        vm: 'demo',
        vmUid: 'u',
        image: `registry.example.com/team/${name}:v1`,
        owner: 'a',
        capture: 'c',
        status: 'Running',
        progress: nothingYet,
        startedAt: at,
      } as const
      await pushJobs.update(await pushJobs.create('svc-default', name, job), { ...job, ...ended, finishedAt: at })
    }
    await end('cancelled', { status: 'Cancelled' })
    await end('pushed', { status: 'Succeeded' })
    await end('failed', { status: 'Failed', errorMessage: 'The registry is read-only' })
    await told('vms', 'demo', [
      'VM demo pushed to registry.example.com/team/pushed:v1',
      'Failed to push VM demo to registry.example.com/team/failed:v1: The registry is read-only',
    ])
  })

  it('system events record a renewed certificate for administrators only', async () => {
    const { certificates } = service.services.collections
    const record = { certificate: 'one', origin: 'made', updatedAt: '', updatedBy: 'system', sealed: '' } as const
    const entry = await certificates.create('', 'renewed', record)
    await certificates.update(entry, { ...record, certificate: 'two' })
    await told('certificates', 'api', ['The self-signed certificate of the API was renewed'])
    const { body } = await service.call('GET', `${inDefault}/events`, { token: service.devToken })
    assert.ok(!JSON.stringify(body).includes('certificate'), JSON.stringify(body))
  })

  it('system events are hidden from members of other namespaces', async () => {
    const { isos } = service.services.collections
    const at = '2026-11-15T09:00:00Z'
    const iso = {
      name: 'setup',
      description: '',
      architecture: 'amd64',
      sizeBytes: 1,
      owner: 'a',
      createdAt: at,
      updatedAt: at,
    } as const
    const pull = { reference: 'r', namespace: 'svc-ios', bytes: 1, sha256: 'x' } as const
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    await isos.update(await isos.create('', 'setup', { ...iso, state: 'Updating', pull }), iso)
    const ofIos = '/api/v1/namespaces/svc-ios/events'
    await eventually(async () => {
      const { body } = await service.call('GET', ofIos)
      assert.ok(body.items.some(({ message }: Shown) => message === 'ISO setup pulled'))
    })
    const refused = await service.call('GET', ofIos, { token: service.devToken })
    assert.equal(refused.status, 403)
    const own = await service.call('GET', `${inDefault}/events`, { token: service.devToken })
    assert.equal(own.status, 200)
    assert.ok(!own.text.includes('setup'), own.text)
  })
})
