// Estimates agree with the deployment that follows, and write nothing.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'

let service: TestService
beforeEach(async () => {
  service = await startService()
  await addImage(service, 'intel', 'amd64')
  await addImage(service, 'apple', 'arm64')
})
afterEach(() => service[Symbol.asyncDispose]())

const vms = '/api/v1/namespaces/svc-default/vms'
const estimate = (body: unknown) => service.call('POST', `${vms}/estimate`, { body })

describe('an estimate', () => {
  it('an estimate names the node that the deployment then gets, and writes nothing', async () => {
    await startNode(service, { name: 'small', report: { cpu: 4 } })
    await startNode(service, { name: 'large', report: { cpu: 16, images: ['intel'] } })
    await startNode(service, { name: 'mac', report: { architecture: 'arm64' } })
    const { rev } = await service.services.store.list('/none/')
    const { status, body } = await estimate({ image: 'intel', cpu: 4 })
    assert.equal(status, 200)
    assert.equal(body.node, 'large')
    assert.equal(body.hasImage, true)
    assert.match(body.message, /^Would run on large, which has the image$/)
    assert.match(body.memory, /^\d+\.\d\dGi$/)
    assert.deepEqual(
      body.nodes.map(({ name, fits }: { name: string; fits: boolean }) => [name, fits]),
      [
        ['large', true],
        ['small', true],
        ['mac', false],
      ],
    )
    assert.match(body.nodes[2].reason, /is arm64; the image is amd64/)
    assert.equal((await service.services.store.list('/none/')).rev, rev)
    await using _ = startScheduler(service)
    const deployed = await service.call('POST', vms, { body: { image: 'intel', cpu: 4 } })
    assert.deepEqual([deployed.status, deployed.body.node, deployed.body.memory], [201, 'large', body.memory])
  })

  it('an estimate over the quota says so, and names no node', async () => {
    await startNode(service, { name: 'large', report: { cpu: 16 } })
    const quota = '/api/v1/namespaces/svc-default/quota'
    assert.equal((await service.call('PUT', quota, { body: { cpu: 4 } })).status, 200)
    assert.equal((await estimate({ image: 'intel', cpu: 4 })).body.node, 'large')
    const { status, body } = await estimate({ image: 'intel', cpu: 5 })
    assert.deepEqual([status, body.node], [200, undefined])
    assert.match(body.overQuota, /^Quota of svc-default reached: 0 of 4 cores in use; 5 requested$/)
    assert.equal(body.message, `Would wait for the quota. ${body.overQuota}`)
  })

  it('an estimate gives the reason of each node if none fits', async () => {
    assert.match((await estimate({ image: 'intel' })).body.message, /^Would wait for a node\. No nodes in svc-default$/)
    await startNode(service, { name: 'small', report: { cpu: 2 } })
    const cordoned = await startNode(service, { name: 'resting', report: { cpu: 64 } })
    await service.call('POST', `/api/v1/namespaces/svc-default/nodes/${cordoned.name}/cordon`)
    const { body } = await estimate({ image: 'intel', cpu: 3 })
    assert.equal(body.node, undefined)
    assert.equal(
      body.message,
      'Would wait for a node. No node fits 3 cores: node small has 2 cores; node resting is cordoned',
    )
    assert.ok(body.nodes.every(({ fits, reason }: { fits: boolean; reason: string }) => !fits && reason))
    const asked = await estimate({ image: 'intel', cpu: 1, node: 'gone' })
    assert.deepEqual([asked.status, asked.body.message], [404, 'Node gone not found in svc-default'])
  })

  it('an estimate chooses only nodes that run macOS, like the deployment', async () => {
    const { images } = service.services.collections
    const image = images.get('', 'apple')
    assert.ok(image)
    await images.update(image, { ...image.value, os: 'macos' })
    const noMacos = 'it is no Mac; see docs/operate/hosts-macos.md'
    await startNode(service, { name: 'qemu', report: { architecture: 'arm64', images: ['apple'], noMacos } })
    const { status, body } = await estimate({ image: 'apple', cpu: 1 })
    assert.equal(status, 422)
    assert.equal(body.message, 'Node qemu cannot run macOS guests: it is no Mac; see docs/operate/hosts-macos.md')
    await using _ = startScheduler(service)
    const deploy = (more: object) => service.call('POST', vms, { body: { image: 'apple', cpu: 1, ...more } })
    assert.match((await deploy({})).body.message, /Node qemu cannot run macOS guests/)
    await startNode(service, { name: 'mac', report: { architecture: 'arm64', maxMacosVms: 2 } })
    for (let vm = 0; vm < 2; vm++) assert.equal((await deploy({})).body.node, 'mac')
    const third = (await estimate({ image: 'apple', cpu: 1 })).body.message
    assert.match(third, /node mac is at Apple’s limit of macOS VMs/)
    const { items } = (await service.call('GET', '/api/v1/namespaces/svc-default/nodes')).body
    assert.deepEqual(
      items.map((node: Record<string, unknown>) => [node.name, node.maxMacosVms, node.noMacos]),
      [
        ['mac', 2, undefined],
        ['qemu', undefined, noMacos],
      ],
    )
  })

  it('a Mac that cannot start macOS VMs keeps them waiting, with the reason', async () => {
    const { images } = service.services.collections
    const image = images.get('', 'apple')
    assert.ok(image)
    await images.update(image, { ...image.value, os: 'macos' })
    const check = {
      check: 'login session',
      result: 'problem',
      found: 'No user at the screen',
      advice: 'Log in as admin',
      preventsMacos: true,
    } as const
    const noMacos = `${check.found}. ${check.advice}`
    const blocked = { architecture: 'arm64' as const, maxMacosVms: 0, noMacos, checks: [check] }
    const mac = await startNode(service, { name: 'mac', report: blocked })
    const { status, body } = await estimate({ image: 'apple', cpu: 1 })
    const reason = 'Node mac cannot run macOS guests: No user at the screen. Log in as admin'
    assert.deepEqual([status, body.message], [200, `Would wait for a node. ${reason}`])
    const [node] = (await service.call('GET', '/api/v1/namespaces/svc-default/nodes')).body.items
    assert.deepEqual([node.maxMacosVms, node.noMacos, node.checks], [0, noMacos, [check]])
    await mac.report({ maxMacosVms: 2, checks: [{ check: check.check, result: 'ok', found: 'admin at the screen' }] })
    assert.equal((await estimate({ image: 'apple', cpu: 1 })).body.node, 'mac')
  })

  it('an estimate refuses what a deployment refuses', async () => {
    await startNode(service)
    await using _ = startScheduler(service)
    await service.call('POST', vms, { body: { image: 'intel', name: 'demo', cpu: 1 } })
    const bad = { image: 'intel', name: 'No Name', ttl: 'soon', reservedPorts: 'x' }
    const [estimated, deployed] = [await estimate(bad), await service.call('POST', vms, { body: bad })]
    assert.deepEqual([estimated.status, estimated.body.details], [deployed.status, deployed.body.details])
    assert.equal(estimated.status, 422)
    assert.equal((await estimate({ image: 'nothing' })).status, 404)
    assert.equal((await estimate({ image: 'intel', name: 'demo' })).status, 409)
    assert.equal((await estimate({ cpu: 3 })).status, 400)
  })
})
