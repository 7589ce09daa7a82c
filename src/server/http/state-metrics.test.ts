// Prometheus metrics of pools.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PoolRig } from '../../../test/support/rigs/pool-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { createMetrics } from './metrics.ts'

async function told({ service: { services, clock } }: PoolRig): Promise<string[]> {
  const { registry, observe } = createMetrics('')
  const { store, collections } = services
  observe({ store, collections, clock, isLeading: () => true })
  return (await registry.metrics()).split('\n').filter((line) => line.startsWith('svc3_pool_'))
}
const of = 'namespace="svc-default",pool="warm"'

describe('metrics of pools', () => {
  it('metrics of a pool count hits, misses and evictions, and have its present and wanted VMs', async () => {
    await using rig = await PoolRig.start([{ cpu: 4 }])
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 2, maxIdle: 3 })
    await rig.full(2)
    await rig.call('POST', '/vms', { name: 'a', vmConfig: 'small' })
    await rig.full(2)
    await rig.call('POST', '/vms', { name: 'large', image: 'tiny-amd64', cpu: 3, memory: 1 })
    await eventually(async () => {
      const lines = await told(rig)
      assert.ok(lines.includes(`svc3_pool_removed_total{${of},reason="Evicted"} 2`), lines.join('\n'))
    })
    const lines = await told(rig)
    for (const line of [
      `svc3_pool_min_idle{${of}} 2`,
      `svc3_pool_ready{${of}} 0`,
      `svc3_pool_oldest_unready_seconds{${of}} 0`,
      `svc3_pool_claims_total{${of},result="hit"} 1`,
      `svc3_pool_claims_total{${of},result="miss"} 0`,
    ])
      assert.ok(lines.includes(line), `${line} is missing:\n${lines.join('\n')}`)
    await rig.call('PUT', '/pools/warm', { paused: true })
    assert.ok((await told(rig)).includes(`svc3_pool_min_idle{${of}} 0`))
  })

  it('metrics of a pool have failures by reason, and the age of a warm VM that is not ready', async () => {
    await using rig = await PoolRig.start([{ cpu: 4, knobs: { failAt: { start: 1 } } }])
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 1 })
    await eventually(async () => {
      const lines = await told(rig)
      assert.ok(lines.includes(`svc3_pool_failures_total{${of},reason="StartFailed"} 1`), lines.join('\n'))
    }, 20_000)
    const { nodes } = rig.service.services.collections
    const [node] = nodes.list()
    assert.ok(node)
    const { uid: poolUid } = rig.service.services.collections.pools.list()[0]?.value ?? assert.fail()
    const createdAt = new Date(rig.service.clock.nowMs - 90_000).toISOString()
    const shape = rig.service.services.collections.vmConfigs.list()[0]?.value.shape ?? assert.fail()
    const slot = { pool: 'warm', poolUid, createdAt, shape, ssh: 1, screenshare: 2 }
    const size = { namespace: 'svc-default', name: 'warm-x', cpu: 1, memoryMiB: 512, gpus: 0, ports: [] }
    await Promise.all(rig.loops.map((loop) => loop.stop()))
    await nodes.change(node.key, (record) => record && { ...record, slots: { x: { ...size, slot } } })
    const line = (await told(rig)).find((each) => each.startsWith('svc3_pool_oldest_unready_seconds'))
    const seconds = Number(line?.split(' ')[1])
    assert.ok(seconds >= 90 && seconds < 150, line)
  })
})
