// VMs through the API, with a simulated node: deployment, placement, power, resize, deletion.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type Answer, type CallOptions, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import {
  addImage,
  type NodeOptions,
  type NodeStandIn,
  startNode,
  startScheduler,
} from '../../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import type { DesiredVm } from '../../../api/nodes/agent.ts'
import { expireVms } from '../../../controllers/expire-vms.ts'
import { markNodes } from '../../../controllers/mark-nodes.ts'
import type { VmConfigRecord } from '../../../store/records/fleet-records.ts'
import { nodeUseOf } from '../../../store/records/node-vms.ts'
import { StoreError } from '../../../store/store.ts'

const inDefault = '/api/v1/namespaces/svc-default'
let service: TestService
let scheduler: AsyncDisposable

beforeEach(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  await addImage(service, 'silicon', 'arm64')
})
afterEach(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const node = (options: NodeOptions = {}): Promise<NodeStandIn> => startNode(service, options)
const deploy = (body: object, options: CallOptions = {}, query = ''): Promise<Answer> =>
  service.call('POST', `${inDefault}/vms${query}`, { ...options, body: { image: 'intel', ...body } })
const get = (path: string): Promise<Answer> => service.call('GET', `${inDefault}/${path}`)
const exec = (vm: string, command: string): Promise<Answer> =>
  service.call('POST', `${inDefault}/vms/${vm}/exec`, { body: { command } })
const resize = (vm: string, body: object): Promise<Answer> =>
  service.call('POST', `${inDefault}/vms/${vm}/resize`, { body })
const record = (name: string) => service.services.collections.vms.get('svc-default', name)?.value
const uses = (node: string) =>
  [...service.services.collections.nodeVms.on(node)].flatMap(({ value }) => nodeUseOf(value) ?? [])

/** Waits until the record meets a condition. */
const seen = (name: string, test: (vm: NonNullable<ReturnType<typeof record>> | undefined) => boolean) =>
  service.services.waits.until(
    service.services.collections.vms.key('svc-default', name),
    (entry) => test(entry?.value) || undefined,
    { ms: 120_000 },
  )

/** Deploys a VM that fits nowhere, and checks the reason. */
async function waits(body: object, reason: RegExp): Promise<void> {
  const { name } = (await deploy(body, {}, '?wait=false')).body
  await seen(name, (vm) => reason.test(vm?.conditions[0]?.message ?? ''))
  assert.equal((await service.call('DELETE', `${inDefault}/vms/${name}`)).status, 200)
}

describe('deploying a VM', () => {
  it('deploying a VM returns when it runs, with all fields for clients', async () => {
    await node()
    const { status, body } = await deploy({ name: 'demo' })
    assert.equal(status, 201)
    const { name, status: shown, powerState, ip, ssh, vnc, screenshare, cpu, memory, node: where } = body
    assert.deepEqual(
      { name, shown, powerState, ip, ssh, vnc, screenshare, cpu, memory, where },
      {
        name: 'demo', shown: 'Running', powerState: 'running', ip: '127.0.0.1', ssh: 8822, vnc: 5999, screenshare: 5900,
        cpu: 3, memory: '4.80Gi', where: 'node-1',
      }, // biome-ignore format: one look
    )
    const { memorySave, ...one } = (await get('vms/demo')).body
    assert.deepEqual(one, body)
    assert.deepEqual(memorySave, { reason: 'that depends on the driver of its node' })
    assert.deepEqual((await get('vms')).body.items, [body])
  })

  it('deploying a VM generates names: vm-<5>, or from a prefix', async () => {
    await node()
    assert.match((await deploy({ cpu: 1 })).body.name, /^vm-[a-z0-9]{5}$/)
    assert.match((await deploy({ cpu: 1, name: 'ci', shouldGenerateName: true })).body.name, /^ci-[a-z0-9]{5}$/)
  })

  it('deploying a VM returns the same response to a repeated request, also if the first was lost', async () => {
    await node()
    const headers = { 'idempotency-key': 'once' }
    const first = await deploy({ cpu: 1 }, { headers })
    assert.equal((await deploy({ cpu: 1 }, { headers })).body.name, first.body.name)
    const answers = service.services.collections.answers
    for (const entry of answers.list()) await answers.delete(entry)
    const again = await deploy({ cpu: 1 }, { headers })
    assert.deepEqual([again.status, again.body.name, again.body.uid], [201, first.body.name, first.body.uid])
    assert.equal((await get('vms')).body.items.length, 1)
    const events = (await get('events')).body.items.filter(({ reason }: { reason: string }) => reason === 'DeployVm')
    assert.equal(events.length, 1)
  })

  it('deploying a VM refuses a name that is taken, and all invalid fields together', async () => {
    await node()
    await deploy({ name: 'demo', cpu: 1 })
    assert.equal((await deploy({ name: 'demo' })).status, 409)
    const { status, body } = await deploy({
      name: 'Not A Name', scheduler: 'best', ttl: 'soon', reservedPorts: '80:80,x', customVMMetadata: { 'a/b': '1', orka_cpu: '9' },
      systemSerial: 'a,b', tagRequired: true,
    }) // biome-ignore format: one look
    assert.equal(status, 422)
    const fields = body.details.causes.map((cause: { field: string }) => cause.field)
    for (const field of [
      'name',
      'scheduler',
      'ttl',
      'reservedPorts',
      'customVMMetadata',
      'systemSerial',
      'tagRequired',
    ])
      assert.ok(fields.includes(field), field)
    assert.equal((await get('vms')).body.items.length, 1)
    const mixed = await deploy({
      name: 'Bad_Name', memory: 'x', scheduler: 'zzz', reservedPorts: '80', vm_metadata: { items: 7 },
    }) // biome-ignore format: one look
    const named = mixed.body.details.causes.map((cause: { field: string }) => cause.field)
    const all = ['memory', 'name', 'reservedPorts', 'scheduler', 'vm_metadata.items']
    assert.deepEqual([mixed.status, named.toSorted()], [400, all])
  })

  it('deploying a VM refuses labels that svc3 sets itself, such as those of a runner pool', async () => {
    const { status, body } = await deploy(
      { name: 'demo', labels: { 'svc3/runner-pool': 'ci', team: 'ios' } },
      {},
      '?wait=false',
    )
    assert.equal(status, 422)
    const message = 'label "svc3/runner-pool": labels beginning with svc3/ are set by svc3'
    assert.deepEqual(body.details.causes, [{ field: 'labels', reason: 'FieldValueInvalid', message }])
  })

  it('deploying a VM refuses an unknown image, configuration, node or ISO, and a deployment without an image', async () => {
    assert.equal((await deploy({ node: 'nothing' })).status, 404)
    assert.equal((await deploy({ image: 'nothing' })).status, 404)
    assert.equal((await deploy({ vmConfig: 'nothing' })).status, 404)
    assert.equal((await deploy({ iso: 'nothing.iso' })).status, 404)
    assert.equal((await service.call('POST', `${inDefault}/vms`, { body: {} })).status, 400)
  })

  it('deploying a VM refuses a display outside of the limits, in a configuration as well', async () => {
    const sizes = [
      ['displayWidth', 320, 3_840],
      ['displayHeight', 480, 2_160],
      ['displayDPI', 60, 320],
    ] as const
    for (const [field, min, max] of sizes) {
      for (const value of [min - 1, max + 1]) {
        const { status, body } = await deploy({ [field]: value })
        assert.deepEqual([status, body.details?.causes[0].field], [422, field], String(value))
      }
      const config = { name: `c${max}`, image: 'silicon', [field]: min - 1 }
      assert.equal((await service.call('POST', `${inDefault}/vmconfigs`, { body: config })).status, 422)
      for (const value of [0, min, max])
        assert.equal((await deploy({ cpu: 1, [field]: value }, {}, '?wait=false')).status, 202, `${field} ${value}`)
    }
    // A configuration of an earlier version.
    const { vmConfigs } = service.services.collections
    await service.call('POST', `${inDefault}/vmconfigs`, { body: { name: 'wide', image: 'silicon', cpu: 1 } })
    const change = (config: VmConfigRecord | undefined) =>
      config && { ...config, shape: { ...config.shape, display: { ...config.shape.display, width: 5_120 } } }
    await vmConfigs.change(vmConfigs.key('svc-default', 'wide'), change)
    assert.equal((await deploy({ vmConfig: 'wide', image: '' }, {}, '?wait=false')).status, 202)
  })

  it('deploying a VM ignores default values that Jenkins always sends', async () => {
    await node({ name: 'arm', report: { architecture: 'arm64' } })
    const config = { name: 'conf', image: 'silicon', cpu: 2, memory: 4 }
    assert.equal((await service.call('POST', `${inDefault}/vmconfigs`, { body: config })).status, 201)
    const jenkins = { vmConfig: 'conf', image: '', memory: 0.0, legacyIO: false, netBoost: false, displayWidth: 0 }
    const { status, body } = await deploy(jenkins)
    assert.deepEqual([status, body.cpu, body.memory, body.architecture], [201, 2, '4.00Gi', 'arm64'])
    assert.equal((await deploy({ vmConfig: 'conf', image: '', cpu: 1 })).body.cpu, 1)
    // Jenkins creates configurations in the default namespace.
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ci' } })
    const elsewhere = '/api/v1/namespaces/svc-ci'
    const other = await service.call('POST', `${elsewhere}/vms?wait=false`, { body: { vmConfig: 'conf' } })
    assert.deepEqual([other.status, other.body.cpu, other.body.namespace, other.body.type], [202, 2, 'svc-ci', 'arm64'])
    assert.equal((await service.call('GET', `${elsewhere}/vmconfigs/conf`)).status, 404)
    for (const intel of [{ legacyIO: true }, { systemSerial: 'A1' }])
      assert.equal((await deploy({ image: 'silicon', ...intel })).status, 422, JSON.stringify(intel))
    assert.equal((await deploy({ image: 'silicon', cpu: 1, systemSerial: 'random' })).status, 201)
    const macs = [{ directories: ['a:/b'] }, { nested: true }, { rosetta: 'r' }]
    for (const mac of macs) assert.equal((await deploy(mac)).status, 422, JSON.stringify(mac))
    const wrong = [['a'], ['a:b'], ['svc3:/a'], ['a:/b:rw'], ['a:/b,tag=c'], ['a:/b', 'A:/c'], ['-a:/b']]
    for (const directories of wrong)
      assert.equal((await deploy({ image: 'silicon', directories })).status, 422, directories.join())
    assert.equal((await deploy({ image: 'silicon', rosetta: 'a b' })).status, 422)
    const withGpu = await deploy({ image: 'silicon', cpu: 1, gpuPassthrough: true })
    assert.deepEqual(
      [withGpu.status, withGpu.body.gpuPassthrough],
      [201, false],
      'always on there, so nothing is passed',
    )
  })

  it('deploying a VM sends metadata and the first-boot script to the node, and shows only the keys', async () => {
    const there = await node()
    const script = Buffer.from('echo planted-secret').toString('base64')
    const { body } = await deploy({
      name: 'demo', customVMMetadata: { token: 'planted-secret' }, metadata: { a: 1 }, userdata: script,
      vm_metadata: { items: [{ key: 'b', value: 'two' }] }, customMetadata: { c: 3 },
    }) // biome-ignore format: one look
    assert.deepEqual(body.metadataKeys.toSorted(), ['a', 'b', 'c', 'token'])
    const desired = there.told.flatMap((each) => (each.type === 'VM' ? [each.vm] : []))[0] as DesiredVm
    assert.deepEqual(desired.metadata, { a: '1', b: 'two', c: '3', token: 'planted-secret' })
    assert.equal(desired.facts?.orka_vm_name, 'demo')
    assert.equal(desired.userdata, script)
    const stored = await service.services.store.list('/')
    assert.ok(!JSON.stringify(stored.entries).includes('planted-secret'))
    assert.ok(!JSON.stringify(stored.entries).includes(script))
    assert.ok(!service.logLines.join('').includes('planted-secret'))
    await service.call('DELETE', `${inDefault}/vms/demo`)
    assert.equal(service.services.collections.vmSecrets.list().length, 0)
  })

  it('deploying a VM validates a long first-boot script quickly, and treats null as a missing field', async () => {
    await node()
    // A regular expression with backtracking would take minutes.
    assert.equal((await deploy({ userdata: `${' '.repeat(349_000)}!` })).status, 422)
    assert.equal((await deploy({ vmConfig: null, tag: null, memory: null, userdata: ' aGk=\n' })).status, 201)
  })

  it('deploying a VM again with the same key keeps the VM, even if it was stopped since', async () => {
    await node()
    const headers = { 'idempotency-key': 'once' }
    await deploy({ name: 'demo', timeout: 2 }, { headers })
    await exec('demo', 'stop')
    const answers = service.services.collections.answers
    for (const entry of answers.list()) await answers.delete(entry)
    const { status, body } = await deploy({ name: 'demo', timeout: 2 }, { headers })
    assert.deepEqual([status, body.powerState], [201, 'stopped'])
  })

  it('deploying a VM returns when its node has finished, so that the next action is not refused as busy', async () => {
    const there = await node({ react: () => undefined })
    const deploying = deploy({ name: 'demo' })
    await seen('demo', (vm) => vm?.place !== undefined)
    const { uid = '' } = record('demo') ?? {}
    const demo = { uid, name: 'demo', namespace: 'svc-default' }
    // A restarted agent reports a VM that it finds before it has received the desired state.
    await there.say(demo, { generation: 0, power: 'running' })
    assert.equal((await exec('demo', 'stop')).status, 409)
    assert.equal(await Promise.race([deploying, new Promise((resolve) => setImmediate(resolve, 'waits'))]), 'waits')
    await there.say(demo, { generation: 1, power: 'running' })
    const { status, body } = await deploying
    assert.deepEqual([status, body.powerState, body.operation], [201, 'running', undefined])
    // The desired state says that this generation is fulfilled.
    there.disconnect()
    there.connect()
    await eventually(() => {
      const told = there.told.at(-1)
      const vms = told?.type === 'HELLO' ? told.vms.map(({ generation, fulfilled }) => [generation, fulfilled]) : []
      assert.deepEqual(vms, [[1, 1]])
    })
  })

  it('deploying a VM that failed cannot be followed by a start without capacity', async () => {
    await node({ react: ({ generation }) => ({ generation, power: 'failed', problem: 'no disk' }) })
    await deploy({ name: 'demo' }, {}, '?wait=false')
    await seen('demo', (vm) => vm?.observed.power === 'failed')
    for (const command of ['start', 'revert']) assert.equal((await exec('demo', command)).status, 409)
  })

  it('deploying a VM that fails leaves nothing behind, and returns the reason', async () => {
    const fail = (vm: DesiredVm) =>
      vm.power === 'deleted'
        ? { generation: vm.generation, power: 'removed' as const }
        : { generation: vm.generation, power: 'failed' as const, problem: 'QEMU ended with exit code 1' }
    await node({ react: fail })
    const { status, body } = await deploy({ name: 'demo', metadata: { a: 1 } })
    assert.equal(status, 500)
    assert.match(body.message, /VM demo could not be deployed: QEMU ended with exit code 1/)
    assert.equal((await get('vms')).body.items.length, 0)
    assert.deepEqual(uses('node-1'), [])
    assert.equal(service.services.collections.vmSecrets.list().length, 0)
  })

  it('deploying a VM to a host that lacks something is a 503, so late that no client repeats it by itself', async () => {
    const problem = 'Could not be deployed on node node-1: UEFI firmware for arm64 is not installed on this host'
    await node({
      react: ({ generation, power }) =>
        power === 'deleted'
          ? { generation, power: 'removed' }
          : { generation, power: 'failed', problem, isHostUnfit: true },
    })
    const { status, body, headers } = await deploy({ name: 'demo' })
    assert.deepEqual([status, body.reason, headers['retry-after']], [503, 'ServiceUnavailable', '3600'])
    assert.match(
      body.message,
      /^VM demo could not be deployed on node node-1: UEFI firmware for arm64 is not installed/,
    )
  })

  it('deploying a VM without waiting shows a failed VM, which uses no capacity', async () => {
    await node({ react: ({ generation }) => ({ generation, power: 'failed', problem: 'no disk' }) })
    assert.equal((await deploy({ name: 'demo' }, {}, '?wait=false')).status, 202)
    await seen('demo', (vm) => vm?.observed.power === 'failed')
    const { body } = await get('vms/demo')
    assert.deepEqual([body.status, body.errorMessage], ['Failed', 'no disk'])
    assert.equal((await service.call('DELETE', `${inDefault}/vms/demo`)).status, 200)
    assert.deepEqual(uses('node-1'), [])
    assert.equal((await get('vms/demo')).status, 404)
  })

  it('deploying a VM returns 504 with the reasons after its timeout, and leaves nothing behind', async () => {
    await node({ report: { cpu: 4 } })
    await node({ name: 'arm', report: { architecture: 'arm64' } })
    await deploy({ name: 'first', cpu: 2 })
    const { status, body } = await deploy({ name: 'demo', timeout: 0.03 })
    assert.equal(status, 504)
    assert.equal(body.reason, 'Timeout')
    assert.match(
      body.message,
      /^VM demo was not deployed within .*\. No amd64 node has 3 cores free: node node-1 has 2$/,
    )
    assert.equal((await get('vms')).body.items.length, 1)
  })

  it('deploying a VM in a namespace without nodes returns a hint after its timeout', async () => {
    const { status, body } = await deploy({ name: 'demo', timeout: 0.03 })
    assert.equal(status, 504)
    assert.match(body.hint, /Run svc3 node namespace NODE svc-default to give svc-default a node/)
  })

  it('deploying a VM that is too large for every node is refused immediately', async () => {
    await node({ report: { cpu: 2 } })
    await service.call('POST', `${inDefault}/nodes/node-1/cordon`)
    const refused = async (fields: object, message: string) => {
      for (const query of ['', '?wait=false']) {
        const { status, body } = await deploy({ cpu: 1, metadata: { a: 1 }, ...fields }, {}, query)
        assert.deepEqual([status, body.reason, body.message], [422, 'Invalid', message])
      }
    }
    await refused({ cpu: 64 }, 'No node can hold 64 cores; the largest has 2 cores and 16 GiB')
    await refused({ memory: 64 }, 'No node can hold 64 GiB of memory; the largest has 2 cores and 16 GiB')
    await refused({ gpuPassthrough: true, vncConsole: false }, 'Node node-1 has no GPU')
    await refused({ tag: 'x', tagRequired: true }, 'Node node-1 does not have tag x')
    await refused({ node: 'node-1', cpu: 3 }, 'Node node-1 has 2 cores; 3 requested')
    await refused({ image: 'silicon' }, 'Node node-1 is amd64; the image is arm64')
    assert.equal((await get('vms')).body.items.length, 0)
    assert.equal(service.services.collections.vmSecrets.list().length, 0)
    // A VM that may fit later waits.
    assert.equal((await deploy({ cpu: 2 }, {}, '?wait=false')).status, 202)
  })

  it('deploying a VM is ended by the controller if the waiting server has died', async () => {
    await deploy({ name: 'demo', timeout: 1 }, {}, '?wait=false')
    const { vms } = service.services.collections
    const entry = vms.get('svc-default', 'demo')
    assert.ok(entry)
    await vms.update(entry, { ...entry.value, awaitedUntil: '2026-11-15T08:00:00Z' })
    const loop = expireVms(service.services)
    await seen('demo', (vm) => vm === undefined)
    await loop.stop()
  })

  describe('with onDisconnect=delete', () => {
    const start = '2026-11-15T09:00:00Z'
    let origin: string
    beforeEach(async () => {
      origin = await service.listen()
    })
    const until = (name: string, awaitedUntil: string) => seen(name, (vm) => vm?.awaitedUntil === awaitedUntil)
    const open = async (query: string, name = 'demo') => {
      const leaving = new AbortController()
      const headers = { authorization: `Bearer ${service.adminToken}`, 'idempotency-key': name }
      const body = JSON.stringify({ image: 'intel', name })
      const url = `${origin}${inDefault}/vms${query}`
      const answer = fetch(url, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body, signal: leaving.signal }).then(({ status }) => status, () => 'left') // biome-ignore format: one request
      return { answer, leave: () => leaving.abort() }
    }

    it('the VM of a caller who left is deleted after 90 seconds', async () => {
      const { leave } = await open('?onDisconnect=delete')
      await until('demo', '2026-11-15T09:10:00Z')
      leave()
      await until('demo', '2026-11-15T09:01:30Z')
      service.clock.nowMs = Date.parse(start) + 96_000
      const loop = expireVms(service.services)
      await seen('demo', (vm) => vm === undefined)
      await loop.stop()
    })

    it('a repeated request claims the VM, and gets it when it runs', async () => {
      const first = await open('?onDisconnect=delete')
      await until('demo', '2026-11-15T09:10:00Z')
      first.leave()
      await until('demo', '2026-11-15T09:01:30Z')
      const second = await open('?onDisconnect=delete')
      await until('demo', '2026-11-15T09:10:00Z')
      // Where the third joined the second, which then ended, it repeats the request as the command line does.
      const repeat = async (): Promise<number | string> => {
        const answer = await (await open('?onDisconnect=delete')).answer
        return answer === 503 ? repeat() : answer
      }
      const third = repeat()
      second.leave()
      assert.equal(await second.answer, 'left')
      await node()
      assert.equal(await third, 201)
      assert.equal(record('demo')?.awaitedUntil, '2026-11-15T09:10:00Z')
    })

    it('a VM that runs is kept, and so is that of a caller who did not request it', async () => {
      const kept = await open('', 'kept')
      const left = await open('?onDisconnect=delete', 'left')
      for (const name of ['kept', 'left']) await until(name, '2026-11-15T09:10:00Z')
      for (const { leave } of [kept, left]) leave()
      await until('left', '2026-11-15T09:01:30Z')
      await node()
      for (const name of ['kept', 'left']) await seen(name, (vm) => vm?.observed.hasRun === true)
      service.clock.nowMs = Date.parse(start) + 3_600_000
      const loop = expireVms(service.services)
      await loop.stop()
      assert.deepEqual(
        ['kept', 'left'].map((name) => record(name)?.observed.power),
        ['running', 'running'],
      )
      assert.equal(record('kept')?.awaitedUntil, '2026-11-15T09:10:00Z')
    })
  })

  it('deploying a VM with a TTL: it is deleted after that, and can be extended', async () => {
    await node()
    const { body } = await deploy({ name: 'demo', ttl: '20m' })
    assert.equal(body.expiresAt, '2026-11-15T09:20:00Z')
    const extend = await service.call('POST', `${inDefault}/vms/demo/extend`, { body: { ttl: '40m' } })
    assert.equal(extend.body.expiresAt, '2026-11-15T09:40:00Z')
    service.clock.nowMs += 40 * 60_000
    const loop = expireVms(service.services)
    await seen('demo', (vm) => vm === undefined)
    await loop.stop()
    assert.deepEqual(uses('node-1'), [])
  })

  it('deploying a VM with a TTL that is extended concurrently keeps the VM', async (t) => {
    await node()
    await deploy({ name: 'demo', ttl: '20m' })
    const { store, collections } = service.services
    const update = store.update.bind(store)
    const expiresAt = '2026-11-15T19:00:00Z'
    const refused = Promise.withResolvers<void>()
    t.mock.method(store, 'update', async (...args: Parameters<typeof update>) => {
      const entry = collections.vms.get('svc-default', 'demo')
      if (args[0] === entry?.key && entry.value.expiresAt !== expiresAt) {
        await update(entry.key, { ...(entry.value as object), expiresAt }, entry.rev)
        setImmediate(refused.resolve)
      }
      return update(...args)
    })
    service.clock.nowMs += 20 * 60_000
    const loop = expireVms(service.services)
    await refused.promise
    await loop.stop()
    assert.deepEqual([record('demo')?.expiresAt, record('demo')?.desired.power], [expiresAt, 'running'])
  })

  it('deploying a VM whose write had an unknown result keeps its metadata', async (t) => {
    const { store, collections } = service.services
    const create = store.create.bind(store)
    t.mock.method(store, 'create', async (...args: Parameters<typeof create>) => {
      const entry = await create(...args)
      if (args[0].startsWith(collections.vms.prefix)) throw new StoreError('Unknown', 'the answer was lost')
      return entry
    })
    const answer = await deploy({ name: 'demo', customMetadata: { build: '4711' } }, {}, '?wait=false')
    assert.ok(answer.status >= 500, answer.text)
    await seen('demo', (vm) => vm !== undefined)
    assert.ok(collections.vmSecrets.get('', record('demo')?.uid ?? ''))
  })

  it('deploying a VM into a namespace that is deleted concurrently creates none', async (t) => {
    const { store, collections } = service.services
    const create = store.create.bind(store)
    const namespaceBecomes = (change: object) => async (): Promise<unknown> => {
      const space = collections.namespaces.get('', 'svc-default')
      assert.ok(space)
      return store.update(space.key, { ...(space.value as object), ...change }, space.rev)
    }
    const meanwhile: (() => Promise<unknown>)[] = []
    const made: string[] = []
    t.mock.method(store, 'create', async (...args: Parameters<typeof create>) => {
      const isVm = args[0].startsWith(collections.vms.prefix)
      if (isVm) await meanwhile.shift()?.()
      const entry = await create(...args)
      if (isVm) made.push(args[0])
      return entry
    })
    meanwhile.push(namespaceBecomes({ requestKey: 'other' }))
    const changed = await deploy({ name: 'changed' }, {}, '?wait=false')
    assert.equal(changed.status, 202, changed.text)
    meanwhile.push(namespaceBecomes({ isTerminating: true }))
    const ended = await deploy({ name: 'ended' }, {}, '?wait=false')
    assert.deepEqual([ended.status, ended.body.message], [409, 'Namespace svc-default is being deleted'])
    assert.deepEqual(made, [collections.vms.key('svc-default', 'changed')])
  })

  it('deploying a VM whose image changes concurrently uses the new content, or fails', async (t) => {
    const { store, collections } = service.services
    const create = store.create.bind(store)
    const meanwhile: (() => Promise<unknown>)[] = []
    t.mock.method(store, 'create', async (...args: Parameters<typeof create>) => {
      if (args[0].startsWith(collections.vms.prefix)) await meanwhile.shift()?.()
      return create(...args)
    })
    const imageBecomes = (change: object) => async (): Promise<unknown> => {
      const image = collections.images.get('', 'intel')
      assert.ok(image)
      return collections.images.update(image, { ...image.value, ...change })
    }
    const withSecret = (name: string) => deploy({ name, customMetadata: { some: 'secret' } }, {}, '?wait=false')
    meanwhile.push(imageBecomes({ content: 'sha256:newer' }), imageBecomes({ content: 'sha256:newest' }))
    assert.equal((await withSecret('moved')).status, 202)
    assert.equal(record('moved')?.imageContent, 'sha256:newest')

    meanwhile.push(imageBecomes({ state: 'Updating' }))
    const locked = await withSecret('locked')
    assert.deepEqual([locked.status, record('locked')], [409, undefined], locked.text)
    assert.match(locked.body.message, /is Updating/)
    await imageBecomes({ state: 'Ready' })()

    meanwhile.push(async () => {
      const image = collections.images.get('', 'intel')
      assert.ok(image)
      await collections.images.delete(image)
    })
    assert.equal((await withSecret('gone')).status, 404)
    assert.equal(collections.vmSecrets.list().length, 1)
  })

  it('deploying a VM refuses a namespace that is reserved for other workloads', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-pods', enableCustomPods: true } })
    const { status, body } = await service.call('POST', '/api/v1/namespaces/svc-pods/vms', { body: { image: 'intel' } })
    assert.equal(status, 422, body.message)
  })
})

describe('placement', () => {
  it('placement never assigns cores twice to concurrent deployments', async () => {
    await node({ report: { cpu: 8 } })
    await Promise.all(Array.from({ length: 6 }, () => deploy({ cpu: 3 }, {}, '?wait=false')))
    const isSettled = (vm: { status: string; errorMessage?: string; conditions: { message: string }[] }) =>
      vm.status === 'Running' || /cores free; 3 requested/.test(vm.conditions[0]?.message ?? '')
    const all = await eventually(async () => {
      const { items } = (await get('vms')).body
      assert.ok(items.length === 6 && items.every(isSettled), JSON.stringify(items))
      return items
    })
    assert.equal(all.filter(({ status }: { status: string }) => status === 'Running').length, 2)
    assert.equal((await get('nodes')).body.items[0].availableCpu, 2)
    const ports = uses('node-1').flatMap((each) => each.ports)
    assert.equal(new Set(ports).size, ports.length)
  })

  it('placement shows the reasons of a pending VM, and places it as soon as possible', async () => {
    const { status, body } = await deploy({ name: 'demo' }, {}, '?wait=false')
    assert.deepEqual([status, body.status, body.powerState], [202, 'Pending', 'pending'])
    await seen('demo', (vm) => vm?.conditions[0]?.message === 'No nodes in svc-default')
    await node({ name: 'mac', report: { architecture: 'arm64' } })
    const verdict = { name: 'mac', fits: false, reason: 'is arm64; the image is amd64' }
    assert.deepEqual((await get('vms/demo')).body.nodes, [verdict])
    await node()
    await seen('demo', (vm) => vm?.observed.power === 'running')
  })

  it('placement uses no node that is disconnected, cordoned, or in another namespace', async () => {
    const first = await node()
    first.disconnect()
    await waits({}, /Node node-1 is not connected/)
    first.connect()
    assert.equal((await service.call('POST', `${inDefault}/nodes/node-1/cordon`)).body.cordoned, true)
    await waits({}, /Node node-1 is cordoned/)
    await service.call('POST', `${inDefault}/nodes/node-1/uncordon`)
    assert.equal((await deploy({})).status, 201)
  })

  it('placement assigns different ports on nodes with the same address, and no busy ports', async () => {
    await node({ name: 'a', report: { cpu: 3, busyPorts: [8822, 5999] } })
    await node({ name: 'b', report: { cpu: 3 } })
    const [one, two] = [await deploy({}), await deploy({})]
    const ports = [one, two].flatMap(({ body }) => [body.ssh, body.vnc, body.screenshare])
    assert.deepEqual(ports.toSorted(), [5900, 5901, 6000, 6001, 8823, 8824].toSorted())
  })

  it('placement chooses another port if one is taken, and another node if it was reserved', async () => {
    const taking = (port: number) => {
      const busy = new Set([port])
      return (vm: DesiredVm) => {
        const { generation } = vm
        if (vm.power === 'deleted') return { generation, power: 'removed' as const }
        const taken = [vm.ssh, ...vm.reservedPorts.map(({ nodePort }) => nodePort)].filter((each) => busy.has(each))
        if (taken.length > 0) return { generation: 0, power: 'starting' as const, portsTaken: taken }
        return { generation, power: 'running' as const }
      }
    }
    await node({ name: 'a', react: taking(8822), report: { ip: '127.0.0.2' } })
    assert.equal((await deploy({ name: 'one' })).body.ssh, 8823)
    await node({ name: 'b', report: { ip: '127.0.0.3', cpu: 6 } })
    await node({ name: 'c', react: taking(9000), report: { ip: '127.0.0.4', cpu: 64 } })
    const reserved = deploy({ name: 'two', reservedPorts: '9000:80', tag: 'x' })
    await seen('two', (vm) => vm?.place !== undefined)
    await service.call('POST', `${inDefault}/nodes/c/cordon`)
    assert.notEqual((await reserved).body.node, 'c')
  })

  it('placement prefers or requires a tag, and packs VMs on request', async () => {
    await node({ name: 'a' })
    await node({ name: 'b' })
    await service.call('POST', `${inDefault}/nodes/b/tag`, { body: { tag: 'fast' } })
    assert.equal((await deploy({ cpu: 1, tag: 'fast' })).body.node, 'b')
    assert.equal((await deploy({ cpu: 1 })).body.node, 'a')
    assert.equal((await deploy({ cpu: 2, scheduler: 'most-allocated', node: 'a' })).body.node, 'a')
    assert.equal((await deploy({ cpu: 1, scheduler: 'most-allocated' })).body.node, 'a')
    await service.call('POST', `${inDefault}/nodes/b/cordon`)
    await waits({ cpu: 1, tag: 'fast', tagRequired: true }, /No node with tag fast is available: node b is cordoned/)
  })

  it('placement respects the limit of a driver', async () => {
    await node({ report: { maxVms: 1 } })
    await deploy({ cpu: 1 })
    await waits({ cpu: 1 }, /Node node-1 is at its limit of 1 VM/)
  })
})

describe('power operations', () => {
  it('power operations follow the table of docs/spec.md R30, and the VM lists as Running throughout', async () => {
    await node()
    await deploy({ name: 'demo' })
    const steps = [
      ['stop', 200, 'stopped'], ['stop', 409, 'stopped'], ['suspend', 409, 'stopped'], ['resume', 409, 'stopped'],
      ['start', 200, 'running'], ['start', 409, 'running'], ['resume', 409, 'running'],
      ['suspend', 200, 'suspended'], ['start', 409, 'suspended'], ['stop', 409, 'suspended'], ['resume', 200, 'running'],
      ['revert', 200, 'running'],
    ] as const // biome-ignore format: a table
    for (const [command, status, power] of steps) {
      const answer = await exec('demo', command)
      assert.equal(answer.status, status, `${command}: ${answer.text}`)
      const { body } = await get('vms/demo')
      assert.deepEqual([body.powerState, body.status], [power, 'Running'], command)
    }
    assert.equal(record('demo')?.desired.diskGeneration, 2)
  })

  it('power operations and a resize that are repeated with their key cause one event', async () => {
    await node()
    await deploy({ name: 'demo' })
    const events = async (reason: string): Promise<number> =>
      (await get('events')).body.items.filter((event: { reason: string }) => event.reason === reason).length
    const { answers } = service.services.collections
    const requests = [
      ['ResizeVm', 'resize', { size: 3 }],
      ['StopVm', 'exec', { command: 'stop' }],
    ] as const
    for (const [reason, path, body] of requests) {
      const headers = { 'idempotency-key': reason }
      const send = () => service.call('POST', `${inDefault}/vms/demo/${path}`, { body, headers })
      assert.equal((await send()).status, 200)
      // The state after a crash between the event and the response.
      for (const entry of answers.list()) await answers.delete(entry)
      assert.deepEqual([(await send()).status, await events(reason)], [200, 1])
      // The state after a crash before the event.
      for (const entry of answers.list()) await answers.delete(entry)
      const { events: all } = service.services.collections
      for (const entry of all.list('svc-default')) if (entry.value.reason === reason) await all.delete(entry)
      assert.deepEqual([(await send()).status, await events(reason)], [200, 1])
    }
    assert.ok((await get('events')).body.items.every((event: object) => !('requestKey' in event)))
  })

  it('power operations are refused for Apple silicon, whatever the state', async () => {
    await node({ report: { architecture: 'arm64' } })
    await deploy({ name: 'demo', image: 'silicon' })
    for (const command of ['start', 'stop', 'suspend', 'resume', 'revert']) {
      const { status, body } = await exec('demo', command)
      assert.deepEqual([status, body.reason], [422, 'Invalid'])
      assert.match(body.message, /Intel-based VMs only/)
    }
  })

  it('power operations are refused during another one, and during the deployment', async () => {
    let isMute = false
    const there = await node({
      react: (vm) =>
        isMute ? undefined : { generation: vm.generation, power: vm.power === 'deleted' ? 'removed' : vm.power },
    })
    const { body: vm } = await deploy({ name: 'demo' })
    isMute = true
    const stopping = exec('demo', 'stop')
    await seen('demo', (each) => each?.desired.power === 'stopped')
    const second = await exec('demo', 'stop')
    assert.deepEqual([second.status, second.body.reason], [409, 'Conflict'])
    assert.match(second.body.message, /stop in progress/)
    await there.say(vm, { generation: 2, power: 'stopped' })
    assert.equal((await stopping).status, 200)
    await deploy({ name: 'slow' }, {}, '?wait=false')
    assert.equal((await exec('slow', 'stop')).status, 409)
  })

  it('power operations return the error of the node', async () => {
    await node({
      react: ({ generation, power }) =>
        power === 'stopped'
          ? { generation, power: 'running', problem: 'it does not end' }
          : { generation, power: 'running' },
    })
    await deploy({ name: 'demo' })
    const { status, body } = await exec('demo', 'stop')
    assert.equal(status, 500)
    assert.match(body.message, /VM demo: stop failed\. it does not end/)
  })
})

describe('resizing', () => {
  it('resizing grows the disk, and refuses sizes that are not larger, not whole numbers, or too large for the node', async () => {
    const there = await node({ report: { diskFreeGb: 50 } })
    await deploy({ name: 'demo' })
    assert.equal((await resize('demo', { size: 1 })).status, 422)
    assert.equal((await resize('demo', { size: 0.5 })).status, 422)
    assert.equal((await resize('demo', { size: 2.5 })).status, 422)
    assert.equal((await resize('demo', { size: -1 })).status, 422)
    assert.equal((await resize('demo', { size: 'big' })).status, 400)
    assert.equal((await resize('demo', { size: 100 })).status, 409)
    const same = await resize('demo', { size: 1 })
    assert.match(
      same.body.hint,
      /file system in it: svc3 vm resize demo 1 --user USER --password-stdin -n svc-default$/,
    )
    assert.equal((await resize('demo', { size: 1, user: 'admin', password: 'planted-secret' })).status, 200)
    const { status, body } = await resize('demo', { size: 20, user: 'admin', password: 'planted-secret' })
    assert.deepEqual([status, body.diskGb], [200, 20])
    const desired = there.told.flatMap((each) => (each.type === 'VM' && each.vm.growth ? [each.vm.growth] : []))
    const login = { user: 'admin', password: 'planted-secret' }
    assert.deepEqual(desired, [login, login])
    const stored = await service.services.store.list('/')
    assert.ok(!JSON.stringify(stored.entries).includes('planted-secret'))
    assert.equal(service.services.growth.size, 0)
  })

  it('resizing without credentials returns instructions, and credentials are refused for Apple silicon', async () => {
    await node()
    await node({ name: 'arm', report: { architecture: 'arm64' } })
    await deploy({ name: 'demo' })
    assert.match((await resize('demo', { size: 20 })).body.warning, /growpart/)
    await deploy({ name: 'apple', image: 'silicon' })
    assert.equal((await resize('apple', { size: 20, user: 'a', password: 'b' })).status, 422)
    const { status, body } = await resize('apple', { size: 20 })
    assert.deepEqual([status, body.errorMessage, body.warning], [200, undefined, undefined])
  })
})

describe('deleting a VM', () => {
  it('deleting a VM frees everything, in any phase', async () => {
    await deploy({ name: 'pending' }, {}, '?wait=false')
    assert.equal((await service.call('DELETE', `${inDefault}/vms/pending`)).status, 200)
    await node()
    for (const command of [undefined, 'stop', 'suspend']) {
      await deploy({ name: 'demo' })
      if (command) await exec('demo', command)
      assert.equal((await service.call('DELETE', `${inDefault}/vms/demo`)).status, 200)
      assert.equal((await get('vms/demo')).status, 404)
      assert.deepEqual(uses('node-1'), [])
    }
    assert.equal((await service.call('DELETE', `${inDefault}/vms/demo`)).status, 404)
  })

  it('deleting a VM requires its owner or an administrator, also by a short TTL', async () => {
    await node()
    await deploy({ name: 'demo' })
    const { devToken: token } = service
    const extend = (ttl: string, as: string) =>
      service.call('POST', `${inDefault}/vms/demo/extend`, { body: { ttl }, token: as })
    assert.equal((await extend('1s', token)).status, 403)
    for (const refused of [await extend('100000h', service.adminToken), await deploy({ name: 'x', ttl: '100000h' })]) {
      assert.equal(refused.status, 422)
      assert.match(refused.body.details.causes[0].message, /^ttl "100000h" is not a duration from 1s to 3650d/)
    }
    assert.equal((await extend('0', service.adminToken)).status, 200)
    assert.equal((await service.call('DELETE', `${inDefault}/vms/demo`, { token })).status, 403)
    await deploy({ name: 'mine' }, { token })
    assert.equal((await service.call('DELETE', `${inDefault}/vms/mine?force=true`, { token })).status, 403)
    assert.equal((await service.call('DELETE', `${inDefault}/vms/mine`, { token })).status, 200)
  })

  it('deleting a VM is not delayed by extending it', async () => {
    await node({ react: ({ generation, power }) => (power === 'deleted' ? undefined : { generation, power }) })
    await deploy({ name: 'demo', ttl: '20m' })
    const { vms } = service.services.collections
    await vms.change(vms.key('svc-default', 'demo'), (vm) => {
      assert.ok(vm)
      return { ...vm, desired: { ...vm.desired, power: 'deleted', generation: 2, action: 'delete' } }
    })
    const answer = await service.call('POST', `${inDefault}/vms/demo/extend`, { body: { ttl: '40m' } })
    assert.deepEqual([answer.status, record('demo')?.expiresAt], [404, '2026-11-15T09:20:00Z'], answer.text)
  })

  it('deleting a VM can be forced if the node is lost, which deletes it when it returns', async () => {
    const there = await node()
    const { body } = await deploy({ name: 'demo' })
    there.disconnect()
    assert.equal((await service.call('DELETE', `${inDefault}/vms/demo?force=true`)).status, 200)
    there.connect()
    const answer = (await there.say(body, { generation: 1, power: 'running' })) as { unknown: string[] }
    assert.deepEqual(answer.unknown, [body.uid])
  })

  it('deleting a VM causes an event once it is certain, also if its node does not respond in time', async () => {
    const { collections } = service.services
    const silent: NodeOptions['react'] = ({ power, generation }) =>
      power === 'running' ? { power, generation } : undefined
    await node({ name: 'silent', react: silent })
    assert.equal((await deploy({ name: 'slow', node: 'silent' })).status, 201)
    const ending = service.call('DELETE', `${inDefault}/vms/slow`)
    await eventually(() =>
      assert.ok(collections.events.list('svc-default').some(({ value }) => value.reason === 'DeleteVm')),
    )
    assert.ok(record('slow'))
    assert.equal((await service.call('DELETE', `${inDefault}/vms/slow?force=true`)).status, 200)
    assert.equal((await ending).status, 200)
    assert.deepEqual(uses('silent'), [])
  })

  it('deleting a VM ends its deployment', async () => {
    await node({
      react: (vm) => (vm.power === 'deleted' ? { generation: vm.generation, power: 'removed' } : undefined),
    })
    const deploying = deploy({ name: 'demo' })
    await seen('demo', (vm) => vm?.place !== undefined)
    assert.equal((await service.call('DELETE', `${inDefault}/vms/demo`)).status, 200)
    const { status, body } = await deploying
    assert.equal(status, 409)
    assert.match(body.message, /deleted/)
  })

  it('deleting a namespace is refused until its VM is deleted', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    await node({ namespace: 'svc-ios' })
    const first = await service.call('DELETE', '/api/v1/namespaces/svc-ios')
    assert.equal(first.status, 409)
    assert.match(first.body.message, /node node-1/)
    await service.call('POST', '/api/v1/namespaces/svc-ios/vms', { body: { image: 'intel', name: 'demo' } })
    assert.match((await service.call('DELETE', '/api/v1/namespaces/svc-ios')).body.message, /vm demo/)
  })
})

describe('nodes', () => {
  it('nodes keep a VM whose secret cannot be decrypted, and can still delete it', async () => {
    const there = await node()
    const { body } = await deploy({ name: 'demo', metadata: { a: 1 } })
    const { vmSecrets } = service.services.collections
    const secret = vmSecrets.get('', body.uid)
    assert.ok(secret)
    await vmSecrets.update(secret, { ...secret.value, createdAt: '2000-01-01T00:00:00Z' })
    there.disconnect()
    there.told.length = 0
    there.connect()
    const hello = await eventually(() => there.told.find(({ type }) => type === 'HELLO') ?? assert.fail('no HELLO'))
    assert.ok(hello.type === 'HELLO')
    assert.deepEqual([hello.vms, hello.kept], [[], [body.uid]])
    assert.equal((await service.call('DELETE', `${inDefault}/vms/demo`)).status, 200)
  })

  it('nodes must have an IPv4 address', async () => {
    await assert.rejects(node({ report: { ip: '<script>' } }), /ip/)
    await assert.rejects(node({ name: 'node-2', report: { ip: '300.1.1.1' } }), /ip/)
  })

  it('nodes show the images that are in use', async () => {
    await node()
    const { headers } = await get('images/intel')
    await deploy({ name: 'demo' })
    const seen = { headers: { 'if-none-match': String(headers.etag) } }
    const later = await service.call('GET', `${inDefault}/images/intel`, seen)
    assert.deepEqual([later.status, later.body.usedBy], [200, ['svc-default/demo']])
  })

  it('nodes can be moved and removed only without VMs', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    await node()
    await deploy({ name: 'demo' })
    const move = () => service.call('POST', `${inDefault}/nodes/node-1/namespace`, { body: { namespace: 'orka-ios' } })
    assert.equal((await move()).status, 409)
    assert.equal((await service.call('DELETE', `${inDefault}/nodes/node-1`)).status, 409)
    const drained = await service.call('POST', `${inDefault}/nodes/node-1/drain`, { body: { deleteVms: true } })
    assert.equal(drained.body.cordoned, true)
    await seen('demo', (vm) => vm === undefined)
    assert.equal((await move()).body.namespace, 'orka-ios')
    assert.equal((await get('nodes')).body.items.length, 0)
    assert.equal((await service.call('GET', '/api/v1/namespaces/svc-ios/nodes')).body.items.length, 1)
    assert.equal((await service.call('DELETE', '/api/v1/namespaces/svc-ios/nodes/node-1')).status, 200)
  })

  it('nodes that do not respond are NOT READY, and the state of their VMs is unknown until they return', async () => {
    const there = await node()
    const { body: vm } = await deploy({ name: 'demo' })
    there.disconnect()
    const loop = markNodes(service.services, service.services.fleet, 10)
    await seen('demo', (each) => each?.observed.power === 'unknown')
    await loop.stop()
    assert.equal((await get('nodes')).body.items[0].phase, 'NOT READY')
    const shown = await get('vms/demo')
    assert.deepEqual([shown.body.status, shown.body.powerState], ['Running', 'unknown'])
    assert.equal((await exec('demo', 'stop')).status, 409)
    there.connect()
    const note = () => service.call('POST', '/api/v1/agent/note', { token: there.token })
    assert.deepEqual((await note()).body, { wantsReport: true })
    await there.report()
    assert.deepEqual((await note()).body, { wantsReport: false })
    await there.say(vm, { generation: 1, power: 'running' })
    assert.equal((await get('nodes')).body.items[0].phase, 'READY')
    assert.equal((await get('vms/demo')).body.powerState, 'running')
  })

  it('nodes can change only their own records', async () => {
    const [one, two] = [await node({ name: 'one' }), await node({ name: 'two' })]
    const { body: vm } = await deploy({ name: 'demo', node: 'one' })
    const answer = (await two.say(vm, { generation: 9, power: 'failed', problem: 'lies' })) as { unknown: string[] }
    assert.deepEqual(answer.unknown, [vm.uid])
    assert.equal((await get('vms/demo')).body.powerState, 'running')
    assert.equal((await service.call('GET', `${inDefault}/vms`, { token: one.token })).status, 403)
    const other = { token: 'x', name: 'one', publicKey: 'AAAA' }
    assert.equal((await service.call('POST', '/api/v1/agent/join', { body: other, token: null })).status, 401)
    await service.call('DELETE', `${inDefault}/nodes/two`)
    assert.equal((await service.call('POST', '/api/v1/agent/vms', { body: { vms: [] }, token: two.token })).status, 401)
  })
})
