// The limits of the REST API also hold on the port for Kubernetes clients, which shares the budget of a caller.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService } from '../../../test/support/rigs/service.ts'

const inDefault = '/apis/orka.macstadium.com/v1/namespaces/svc-default'
const configs = `${inDefault}/virtualmachineconfigs`

async function start(limits: object) {
  const service = await startService({ settings: { limits } })
  const kube = startKubernetes(service)
  return {
    service,
    kube,
    [Symbol.asyncDispose]: async () => {
      await kube[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    },
  }
}

describe('limits of the Kubernetes API', () => {
  /** The number of answers before the first 429. */
  const untilRefused = async (ask: () => Promise<{ status: number }>): Promise<number[]> => {
    const seen: number[] = []
    while (seen.length < 100) {
      const { status } = await ask()
      if (status === 429) return seen
      seen.push(status)
    }
    throw new Error('nothing was refused')
  }

  it('a caller has one budget for both ports, and a refusal has Retry-After', async () => {
    await using rig = await start({ requestsPerMinute: 6 })
    const asked = await untilRefused(() => rig.kube.call('GET', configs))
    assert.deepEqual([...new Set(asked)], [200])
    const { headers, body } = await rig.kube.call('GET', configs)
    assert.equal(body.reason, 'TooManyRequests')
    assert.ok(Number(headers['retry-after']) > 0)
    assert.equal((await rig.service.call('GET', '/api/v1/namespaces/svc-default/vmconfigs')).status, 429)
    assert.equal((await rig.kube.call('GET', configs, { token: rig.service.devToken })).status, 200)
  })

  it('guessed tokens are charged to the address, also on paths that need no token', async () => {
    await using rig = await start({ anonymousPerMinute: 6 })
    const guessed = await untilRefused(() => rig.kube.call('GET', configs, { token: 'wrong' }))
    assert.deepEqual([...new Set(guessed)], [401])
    for (const url of [configs, '/version'])
      assert.equal((await rig.kube.call('GET', url, { token: null })).status, 429)
    assert.equal((await rig.kube.call('GET', configs)).status, 200)
  })

  it('a body that is too large is refused and changes nothing', async () => {
    await using rig = await start({ bodyBytes: 1_024 })
    const metadata = { name: 'a', annotations: { long: 'x'.repeat(2_000) } }
    const { status, body } = await rig.kube.call('POST', configs, { body: { metadata } })
    assert.equal(status, 413)
    assert.equal(body.kind, 'Status')
  })

  it('the number of watches per caller is limited', async () => {
    await using rig = await start({ watchesPerCaller: 1 })
    const first = await rig.kube.watch(`${configs}?watch=true&allowWatchBookmarks=true`)
    await first.until(1)
    assert.equal((await rig.kube.call('GET', `${configs}?watch=true`)).status, 429)
    first.close()
  })

  it('no timeout ends a watch without events', async () => {
    await using rig = await start({ headersSeconds: 1, requestSeconds: 1, uploadSilenceSeconds: 1 })
    const { resourceVersion } = (await rig.kube.call('GET', configs)).body.metadata
    const watching = await rig.kube.watch(`${configs}?watch=true&resourceVersion=${resourceVersion}`)
    const { keepAliveTimeout, timeout, requestTimeout } = rig.kube.app.server
    // Only the first limit applies, and only to connections without a request.
    assert.deepEqual([keepAliveTimeout, timeout, requestTimeout], [75_000, 0, 0])
    // Longer than all timeouts for silent connections.
    await sleep(3_500)
    await rig.service.call('POST', '/api/v1/namespaces/svc-default/images', { body: { name: 'empty', size: '1G' } })
    const made = { name: 'late', image: 'empty', cpu: 1 }
    const { status } = await rig.service.call('POST', '/api/v1/namespaces/svc-default/vmconfigs', { body: made })
    assert.equal(status, 201)
    await watching.until(1)
    assert.equal(watching.events[0]?.object.metadata.name, 'late')
  })
})
