// Operations of administrators on nodes while VMs are placed and deleted.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { placedVm } from '../../../../bench/records.ts'
import { startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { startNode } from '../../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import { forgetLeftovers } from '../../../controllers/forget-leftovers.ts'
import { changeNode, unmarkNode } from '../../../store/records/vms.ts'
import { isFault } from '../../../store/store.ts'

const inDefault = '/api/v1/namespaces/svc-default'
let service: TestService

beforeEach(async () => {
  service = await startService()
  await startNode(service)
})
afterEach(() => service?.[Symbol.asyncDispose]())

const addVm = async (index = 1): Promise<void> => {
  const { vms } = service.services.collections
  const vm = placedVm(index, { name: 'node-1' }, index)
  await vms.create(vm.namespace, vm.name, vm)
}
/** Runs while this server looks for VMs. */
const meanwhile = (work: () => Promise<void>): void => {
  const { store } = service.services
  const list = store.list.bind(store)
  store.list = async (...asked) => {
    store.list = list
    await work()
    return list(...asked)
  }
}
const node = async () => (await service.call('GET', `${inDefault}/nodes`)).body.items[0]

describe('a node that VMs are placed on', () => {
  it('a node shows its free capacity, and a watch each change of it', async () => {
    const { status, body } = await service.call('GET', `${inDefault}/nodes`)
    assert.deepEqual([status, body.items[0].availableCpu, body.items[0].vms], [200, 8, []])
    const url = await service.listen()
    const watching = new AbortController()
    const headers = { authorization: `Bearer ${service.adminToken}` }
    const answer = await fetch(`${url}${inDefault}/nodes?watch=true`, { headers, signal: watching.signal })
    let seen = ''
    const reading = (async () => {
      for await (const piece of answer.body as ReadableStream<Uint8Array>) seen += Buffer.from(piece).toString()
    })().catch(() => undefined)
    const told = () =>
      seen
        .split('\n')
        .filter((line) => line.includes('"availableCpu"'))
        .map((line) => (JSON.parse(line) as { object: { availableCpu: number } }).object.availableCpu)
    await eventually(() => assert.deepEqual(told(), [8]))
    await addVm()
    await eventually(() => assert.deepEqual(told(), [8, 7]))
    const { vms } = service.services.collections
    await vms.change(vms.key('svc-default', 'vm-1'), () => null)
    await eventually(() => assert.deepEqual(told(), [8, 7, 8]))
    watching.abort()
    await reading
  })

  it('a node with a VM can be neither removed nor moved, and is unchanged', async () => {
    await addVm()
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-other' } })
    for (const [method, url, body] of [
      ['DELETE', '/nodes/node-1', undefined],
      ['POST', '/nodes/node-1/namespace', { namespace: 'svc-other' }],
    ] as const) {
      const answer = await service.call(method, inDefault + url, { body })
      assert.equal(answer.status, 409, answer.text)
      assert.match(answer.text, /vm-1/)
    }
    assert.equal((await node()).cordoned, false)
  })

  it('a node that does not respond cannot be removed with VMs: the hint suggests to delete them by force', async () => {
    await addVm()
    await changeNode(service.services.collections, 'node-1', (record) => ({ ...record, isReady: false }))
    const { body } = await service.call('DELETE', `${inDefault}/nodes/node-1`)
    assert.match(body.hint, /svc3 vm delete NAME -n svc-default --force$/)
  })

  it('a node that gets a VM while it is being removed stays, and accepts VMs again', async () => {
    meanwhile(addVm)
    const answer = await service.call('DELETE', `${inDefault}/nodes/node-1`)
    assert.equal(answer.status, 409, answer.text)
    const { cordoned, vms } = await node()
    assert.deepEqual([cordoned, vms], [false, ['svc-default/vm-1']])
  })

  it('a node with warm VMs can be removed only if its host is lost, and they are removed with it', async () => {
    const { collections } = service.services
    const { shape } = placedVm(1, { name: 'node-1' }, 1)
    const slot = { pool: 'ci', poolUid: 'p', createdAt: '', shape, ssh: 8_822, screenshare: 5_900 }
    const used = { namespace: 'svc-default', name: 'ci-1', cpu: 1, memoryMiB: 512, gpus: 0, ports: [8_822], slot }
    const remove = () => service.call('DELETE', `${inDefault}/nodes/node-1`)
    await changeNode(collections, 'node-1', (record) => ({ ...record, isReady: true, slots: { s: used } }))
    assert.match((await remove()).body.message, /warm VMs of pools \(1\)/)
    await changeNode(collections, 'node-1', (record) => ({ ...record, isReady: false }))
    const removed = await remove()
    assert.equal(removed.status, 200, removed.text)
    assert.equal(collections.nodes.get('', 'node-1'), undefined)
  })

  it('a placement on a node that is being removed is refused', async () => {
    const { nodes, vms } = service.services.collections
    const looked = nodes.get('', 'node-1') ?? assert.fail()
    const vm = placedVm(1, { name: 'node-1' }, 1)
    meanwhile(() =>
      assert.rejects(vms.create(vm.namespace, vm.name, vm, [looked]), (error) => isFault(error, 'Conflict')),
    )
    assert.equal((await service.call('DELETE', `${inDefault}/nodes/node-1`)).status, 200)
    assert.equal(nodes.get('', 'node-1'), undefined)
  })

  it('a moved node keeps its cordon', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-other' } })
    const move = (from: string, to: string) =>
      service.call('POST', `/api/v1/namespaces/${from}/nodes/node-1/namespace`, { body: { namespace: to } })
    const moved = await move('svc-default', 'svc-other')
    assert.deepEqual([moved.status, moved.body.namespace, moved.body.cordoned], [200, 'svc-other', false], moved.text)
    await service.call('POST', '/api/v1/namespaces/svc-other/nodes/node-1/cordon', { body: {} })
    assert.equal((await move('svc-other', 'svc-default')).body.cordoned, true)
  })

  it('a node that two requests remove or move concurrently is not left cordoned', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-other' } })
    const move = () => service.call('POST', `${inDefault}/nodes/node-1/namespace`, { body: { namespace: 'svc-other' } })
    const answers = await Promise.all([move(), move(), move()])
    assert.equal(answers.filter(({ status }) => status === 200).length, 1, answers.map(({ text }) => text).join())
    const { body } = await service.call('GET', '/api/v1/namespaces/svc-other/nodes')
    assert.deepEqual([body.items.length, body.items[0].cordoned], [1, false])
  })

  it('a node whose removal was interrupted by a crash accepts VMs again, and one that is being removed does not', async () => {
    const { collections, clock } = service.services
    await changeNode(collections, 'node-1', (record) => ({ ...record, leaving: 'of a request that died' }))
    assert.equal((await node()).cordoned, true)
    let nowMs = clock.now().getTime()
    const controller = { ...service.services, clock: { now: () => new Date(nowMs) } }
    let looks = 0
    const loop = forgetLeftovers(controller, async () => {
      looks += 1
    })
    const look = async (): Promise<void> => {
      const before = looks
      loop.nudge()
      // Two runs, because the next one may have started already.
      await eventually(() => assert.ok(looks > before))
      loop.nudge()
      await eventually(() => assert.ok(looks > before + 1))
    }
    await look()
    nowMs += 20_000
    await look()
    assert.equal((await node()).cordoned, true)
    await changeNode(collections, 'node-1', (record) => ({ ...record, leaving: 'of a request that is alive' }))
    nowMs += 1
    await look()
    assert.equal((await node()).cordoned, true)
    nowMs += 20_001
    await look()
    assert.equal((await node()).cordoned, false)
    await loop.stop()
  })

  it('a node stays if its removal took so long that it counted as interrupted', async () => {
    const { collections } = service.services
    meanwhile(async () => {
      const mark = collections.nodes.get('', 'node-1')?.value.leaving
      await unmarkNode(collections, 'node-1', mark ?? '')
    })
    const { status, body } = await service.call('DELETE', `${inDefault}/nodes/node-1`)
    assert.deepEqual([status, body.hint], [409, 'Try again'])
    assert.equal((await node()).cordoned, false)
  })

  it('a resumed watch of nodes gets only nodes whose VMs have changed', async () => {
    const url = await service.listen()
    const before = service.services.collections.nodes.view.rev
    const after = async (rev: string, withinMs: number): Promise<string[]> => {
      const watching = new AbortController()
      const headers = { authorization: `Bearer ${service.adminToken}` }
      const target = `${url}${inDefault}/nodes?watch=true&resourceVersion=${rev}`
      const answer = await fetch(target, { headers, signal: watching.signal })
      let seen = ''
      setTimeout(() => watching.abort(), withinMs).unref()
      for await (const piece of answer.body as ReadableStream<Uint8Array>) {
        seen += Buffer.from(piece).toString()
        if (seen.includes('availableCpu')) break
      }
      return seen.split('\n').filter((line) => line.includes('availableCpu'))
    }
    await assert.rejects(after(before, 300), { name: 'AbortError' })
    await addVm()
    assert.match((await after(before, 60_000))[0] ?? '', /"availableCpu":7/)
  })
})

describe('a join token', () => {
  const join = async (issuedMs: number, joinedMs: number, isMadeAgain: boolean): Promise<number> => {
    const { clock } = service
    const [base, startMs] = ['/api/v1/namespaces/svc-ios', clock.nowMs]
    const make = () => service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    await make()
    clock.nowMs = startMs + issuedMs
    const { token } = (await service.call('POST', `${base}/jointokens`, { body: {} })).body
    clock.nowMs = startMs + joinedMs
    if (isMadeAgain) {
      assert.equal((await service.call('DELETE', base)).status, 200)
      await make()
    }
    const { publicKey } = generateKeyPairSync('ed25519')
    const body = {
      token,
      name: 'host',
      publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    }
    return (await service.call('POST', '/api/v1/agent/join', { token: null, body })).status
  }

  it('a join token of a deleted namespace is not valid for a new one of the same name', async () => {
    assert.equal(await join(0, 61_000, true), 401)
  })

  it('a join token of a server with a slow clock is valid for a new namespace', async () => {
    assert.equal(await join(-30_000, 0, false), 201)
  })
})

describe('a host that is expected', () => {
  const join = (name: string, token: unknown) => {
    const spki = generateKeyPairSync('ed25519').publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
    return service.call('POST', '/api/v1/agent/join', { body: { token, name, publicKey: spki }, token: null })
  }
  const issue = (namespace: string, body: object) =>
    service.call('POST', `/api/v1/namespaces/${namespace}/jointokens`, { body })
  const tagsOf = (name: string) => service.services.collections.nodes.get('', name)?.value.tags
  const expected = async (namespace = 'svc-default') =>
    (await service.call('GET', `/api/v1/namespaces/${namespace}/expectednodes`)).body.items as { name: string }[]

  it('a host that is expected gets its tags with any token of the namespace, and is not expected any more', async () => {
    assert.equal((await issue('svc-default', { node: 'mac-1', tags: ['ios', 'fast'] })).status, 201)
    assert.deepEqual(
      (await expected()).map(({ name }) => name),
      ['mac-1'],
    )
    const other = await issue('svc-default', { tags: ['lab'], reusable: true })
    assert.equal((await join('mac-1', other.body.token)).status, 201)
    assert.deepEqual([tagsOf('mac-1'), await expected()], [['fast', 'ios', 'lab'], []])
    assert.equal((await join('mac-2', other.body.token)).status, 201)
    assert.deepEqual(tagsOf('mac-2'), ['lab'])
  })

  it('a host that is expected in another namespace cannot join before it is expected here', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-other' } })
    await issue('svc-other', { node: 'mac-1', tags: ['ios'] })
    const { token } = (await issue('svc-default', { reusable: true })).body
    const refused = await join('mac-1', token)
    assert.deepEqual([refused.status, tagsOf('mac-1')], [409, undefined])
    assert.match(refused.body.message, /mac-1 is expected in namespace svc-other/)
    await issue('svc-default', { node: 'mac-1' })
    assert.equal((await join('mac-1', token)).status, 201)
    assert.deepEqual([tagsOf('mac-1'), await expected('svc-other')], [[], []])
  })

  it('a host that is expected has a valid name and valid tags, and has not joined', async () => {
    assert.equal((await issue('svc-default', { node: 'node-1' })).status, 409)
    assert.equal((await issue('svc-default', { node: 'Mac 1' })).status, 422)
    assert.equal((await issue('svc-default', { node: 'mac-1', tags: ['-'] })).status, 422)
    assert.deepEqual(await expected(), [])
  })

  it('a host that is expected is no longer, once it is deleted', async () => {
    await issue('svc-default', { node: 'mac-1', tags: ['ios'] })
    assert.equal((await service.call('DELETE', '/api/v1/namespaces/svc-default/nodes/mac-1')).status, 200)
    assert.equal((await service.call('DELETE', '/api/v1/namespaces/svc-default/nodes/mac-1')).status, 404)
    assert.deepEqual(await expected(), [])
  })

  it('a host that is expected in a namespace that was deleted may join any', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-other' } })
    await issue('svc-other', { node: 'mac-1' })
    await service.call('DELETE', '/api/v1/namespaces/svc-other')
    assert.equal((await join('mac-1', (await issue('svc-default', {})).body.token)).status, 201)
  })
})
