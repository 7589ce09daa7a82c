// A write costs what its body is: what is too much is counted before it is looked at, and changes that race do not read all over
// again what they share. test/write-costs.full.test.ts has every write and every shape of body.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startKubernetes } from './support/rigs/kubernetes.ts'
import { startService } from './support/rigs/service.ts'
import { addImage } from './support/stand-ins/node.ts'
import { startWriteRig, type WriteRig, ways } from './support/tools/hostile-writes.ts'
import { costOf, problemOf } from './support/tools/write-costs.ts'

const configs = '/apis/orka.macstadium.com/v1/namespaces/svc-default/virtualmachineconfigs'
const many = (count: number, of: (index: number) => unknown = () => '') =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, of(index)]))

async function startConfigs() {
  const service = await startService({ logLevel: 'silent' })
  const kube = startKubernetes(service)
  await addImage(service, 'intel', 'amd64')
  const created = { metadata: { name: 'prey' }, spec: { image: 'intel', cpu: 2 } }
  assert.equal((await kube.call('POST', configs, { body: created })).status, 201)
  return {
    service,
    kube,
    [Symbol.asyncDispose]: async () => {
      await kube[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    },
  }
}

describe('the cost of a write', () => {
  let rig: WriteRig
  before(async () => {
    rig = await startWriteRig()
  })
  after(() => rig[Symbol.asyncDispose]())

  const patching = ways.filter(({ name }) => name.startsWith('patch virtualmachineconfigs '))
  const names = ['setMetadata', 'create virtualmachineconfigs', 'POST /resources/vm/create']
  for (const way of [...ways.filter(({ name }) => names.includes(name)), ...patching])
    it(`${way.name} takes hostile bodies in time`, async () => {
      const shapes = way.shapes.filter((_, index) => index % 16 === 0)
      for (const shape of shapes) assert.equal(await problemOf(rig, way, shape), undefined, shape.name)
    })

  it('every wire and content type is among the writes', () => {
    assert.equal(patching.length, 4)
    for (const name of [...names, 'Namespace in protobuf', 'delete virtualmachineinstances', 'uploadCertificate'])
      assert.ok(
        ways.some((way) => way.name === name),
        name,
      )
  })
})

describe('what is too much in a body', () => {
  it('more fields or values than any request needs are refused before they are parsed, on both ports', async () => {
    await using rig = await startConfigs()
    const [fields, values] = [{ labels: many(80_000) }, { labels: Array.from({ length: 60_001 }, () => 0) }]
    for (const [body, what] of [
      [fields, '15000 fields'],
      [values, '60000 values'],
    ] as const) {
      const place = '/api/v1/namespaces/svc-default/metadata/vmconfigs/prey'
      const rest = await rig.service.call('PUT', place, { body })
      const kubernetes = await rig.kube.call('POST', configs, { body: { metadata: { name: 'x', ...body } } })
      for (const { status, body: refusal } of [rest, kubernetes]) {
        assert.equal(status, 413)
        assert.ok(refusal.message.startsWith(`The request body has more than ${what}`), refusal.message)
      }
    }
  })

  it('too many labels, annotations, finalizers and owners are refused for their number alone', async () => {
    await using rig = await startConfigs()
    const metadata = {
      name: 'x',
      labels: many(5_000, () => '!'),
      annotations: many(5_000, () => ({})),
      finalizers: Array.from({ length: 5_000 }, () => '!'),
      ownerReferences: Array.from({ length: 5_000 }, () => ({})),
    }
    const { status, body } = await rig.kube.call('POST', configs, { body: { metadata } })
    assert.equal(status, 422)
    const messages = body.details.causes.map(({ message }: { message: string }) => message)
    assert.deepEqual(messages, ['labels: at most 64', 'annotations: at most 1000', 'finalizers: at most 32', 'ownerReferences: at most 32']) // biome-ignore format: one line
    const place = '/api/v1/namespaces/svc-default/metadata/vmconfigs/prey'
    const refused = await rig.service.call('PUT', place, { body: { annotations: many(1_001) } })
    assert.deepEqual([refused.status, refused.body.message], [422, 'annotations: at most 1000'])
    assert.equal((await rig.service.call('PUT', place, { body: { annotations: many(1_000) } })).status, 200)
    // Clients send back the labels that the service computes.
    const labels = { metadata: { labels: many(64, () => 'x') } }
    const headers = { 'content-type': 'application/merge-patch+json' }
    assert.equal((await rig.kube.call('PATCH', `${configs}/prey`, { body: labels, headers })).status, 200)
  })

  it('ten unknown or duplicate fields are named, and that there are more', async () => {
    await using rig = await startConfigs()
    const unknown = { metadata: { name: 'prey' }, spec: { image: 'intel' }, ...many(1_000) }
    const twice = JSON.stringify(unknown).replace('{', `{${'"spec":{},'.repeat(50)}`)
    const { status, headers } = await rig.kube.call('POST', `${configs.replace('prey', 'x')}?dryRun=All`, {
      body: twice.replace('"prey"', '"other"'),
    })
    assert.equal(status, 201)
    const warnings = [headers.warning].flat() as string[]
    assert.equal(warnings.length, 11)
    assert.deepEqual([warnings[0], warnings.at(-1)], ['299 - "unknown field \\"a0\\""', '299 - "and more fields"'])
    assert.ok(warnings.join('').length < 3_000)
  })
})

describe('managers of fields', () => {
  const stored = (operation: string) =>
    Array.from({ length: 64 }, (_, index) => ({
      manager: `m${index}`,
      operation,
      apiVersion: 'orka.macstadium.com/v1',
      time: `2026-11-15T09:00:${String(index % 60).padStart(2, '0')}Z`,
      fieldsType: 'FieldsV1',
      fieldsV1: {
        'f:metadata': { 'f:labels': Object.fromEntries(Object.keys(many(1_200)).map((name) => [`f:${name}`, {}])) },
      },
    }))
  const patches = [
    ['Update', 'application/merge-patch+json', (label: string) => ({ metadata: { labels: { [label]: 'x' } } })],
    [
      'Apply',
      'application/json-patch+json',
      (label: string) => [{ op: 'add', path: `/metadata/labels/${label}`, value: 'x' }],
    ],
  ] as const

  for (const [operation, type, patchOf] of patches)
    it(`a record with too many managers (${operation}) is read, and 20 parallel patches of it are quick`, async () => {
      await using rig = await startConfigs()
      const { vmConfigs } = rig.service.services.collections
      const prepare = async () => {
        const entry = vmConfigs.get('svc-default', 'prey') ?? assert.fail()
        const meta = { ...entry.value.meta, labels: {}, managedFields: stored(operation) }
        await vmConfigs.update(entry, { ...entry.value, meta } as never)
        assert.equal((await rig.kube.call('GET', `${configs}/prey`)).body.metadata.managedFields.length, 64)
      }
      const headers = { 'content-type': type }
      const ask = (index: number) =>
        rig.kube.call('PATCH', `${configs}/prey?fieldManager=me`, { body: patchOf(`l${index}`), headers })
      const taken = await costOf(prepare, async () => {
        const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(index)))
        assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
      })
      assert.ok(taken < 100, `${taken.toFixed()} ms`)
      const kept = vmConfigs.get('svc-default', 'prey')?.value.meta?.managedFields ?? []
      assert.ok(JSON.stringify(kept).length < 65_536)
      assert.ok(kept.some(({ manager }) => manager === 'me'))
    })

  it('a client that sends managers back may send those that it was given', async () => {
    await using rig = await startConfigs()
    const headers = { 'content-type': 'application/merge-patch+json' }
    const patched = await rig.kube.call('PATCH', `${configs}/prey`, { body: { metadata: { managedFields: stored('Update') } }, headers }) // biome-ignore format: one call
    assert.equal(patched.status, 413)
    const few = stored('Apply')
      .slice(0, 9)
      .map((entry) => ({ ...entry, fieldsV1: { 'f:spec': { 'f:cpu': {} } } }))
    const sent = await rig.kube.call('PATCH', `${configs}/prey`, {
      body: { metadata: { managedFields: few } },
      headers,
    })
    assert.deepEqual(sent.body.metadata.managedFields, few)
    const again = await rig.kube.call('PUT', `${configs}/prey`, { body: sent.body })
    assert.deepEqual(again.body.metadata, sent.body.metadata)
  })
})
