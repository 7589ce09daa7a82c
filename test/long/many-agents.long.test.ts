// 1,000 agents on two servers when one is killed: all of them come back through the other within a minute, no node is
// marked as lost on the way, and no VM changes. AGENTS=200 for fewer.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { SimulatedDriver } from '../../src/drivers/simulated.ts'
import { openStore } from '../../src/store/open.ts'
import { ServersRig } from '../support/processes/servers.ts'
import { eventually } from '../support/tools/eventually.ts'

const count = Number(process.env.AGENTS ?? 1_000)
const timeoutMs = 60_000
const inDefault = '/namespaces/svc-default'

it(`${count} agents reconnect when their server is killed`, { timeout: 600_000 }, async (test) => {
  await using rig = await ServersRig.start()
  const [victim, survivor] = await Promise.all([rig.server('a'), rig.server('b')])
  const store = await openStore(rig.storeAddress)
  try {
    await survivor.call('POST', `${inDefault}/images`, { name: 'empty', size: '1G' })
    const names = Array.from({ length: count }, (_, index) => `node-${index}`)
    const start = async (name: string): Promise<void> => {
      const agent = await rig.agent([victim.apiUrl, survivor.apiUrl], victim.joinToken, {
        name,
        driver: new SimulatedDriver({ architectures: ['amd64'] }),
      })
      await agent.ready
    }
    while (names.length > 0) await Promise.all(names.splice(0, 20).map(start))
    for (let index = 0; index < 20; index++) {
      const body = { image: 'empty', name: `vm-${index}`, cpu: 2, memory: 1 }
      assert.equal((await survivor.call('POST', `${inDefault}/vms`, body)).status, 201)
    }
    const ids = async (): Promise<Map<string, number>> => {
      const { entries } = await store.list('/presence/')
      const all = entries.map(({ value }) => (value as { server: string }).server)
      return new Map([...Map.groupBy(all, (id) => id)].map(([id, list]) => [id, list.length]))
    }
    const before = await ids()
    assert.deepEqual([...before.values()], [count])
    const bad: string[] = []
    const watching = new AbortController()
    for (const noun of ['vms', 'nodes']) {
      const url = `${survivor.apiUrl}/api/v1${inDefault}/${noun}?watch=true`
      const headers = { authorization: `Bearer ${survivor.token}` }
      const watch = await fetch(url, { headers, signal: watching.signal })
      void (async () => {
        for await (const chunk of watch.body ?? []) {
          const text = Buffer.from(chunk).toString()
          if (/"powerState":"(?!running)|"phase":"NOT READY"/.test(text)) bad.push(text)
        }
      })().catch(() => undefined)
    }
    const startMs = performance.now()
    await victim.kill()
    await eventually(async () => {
      const now = await ids()
      assert.deepEqual([...now.values()], [count])
      assert.notDeepEqual([...now.keys()], [...before.keys()])
    }, timeoutMs)
    test.diagnostic(`${count} agents were back after ${((performance.now() - startMs) / 1_000).toFixed(1)} s`)
    // Each is reached, and is given work.
    for (let index = 0; index < 20; index++) {
      const { status } = await survivor.call('DELETE', `${inDefault}/vms/vm-${index}`)
      assert.equal(status, 200)
    }
    watching.abort()
    assert.deepEqual(bad, [])
  } finally {
    await store.close()
  }
})
