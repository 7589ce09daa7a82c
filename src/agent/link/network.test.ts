// The agent on faulty networks: cut, silent in one direction, slow. It continues with another address of the service,
// learns new addresses, and VMs are not affected.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { AgentRig } from '../../../test/support/rigs/agent-rig.ts'
import { startTcpProxy, type TcpProxy } from '../../../test/support/stand-ins/tcp-proxy.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

const timeoutMs = 60_000

describe('agent with two addresses of its service', () => {
  let rig: AgentRig
  let ways: [TcpProxy, TcpProxy]

  const urlOf = ({ port }: TcpProxy): string => `http://127.0.0.1:${port}`
  /** Neither earlier streams count nor a last attempt on the cut path. */
  const opensAnother = (before: number, left: TcpProxy): Promise<void> =>
    eventually(async () => assert.ok(rig.server.streamsOpened > before && left.count > 0), timeoutMs)

  beforeEach(async () => {
    rig = await AgentRig.make()
    rig.server.heartbeatSeconds = 1
    const port = Number(new URL(rig.server.apiUrl).port)
    ways = [await startTcpProxy(port), await startTcpProxy(port)]
  })
  afterEach(async () => {
    await rig[Symbol.asyncDispose]()
    for (const way of ways) await way[Symbol.asyncDispose]()
  })

  const start = async (urls: readonly string[]): Promise<void> => {
    const agent = await rig.launch({ apiUrls: urls })
    await agent.ready
    assert.equal((await rig.deploy('a')).power, 'running')
  }

  it('an agent with two addresses of its service changes to the other when one is cut, and back', async () => {
    await start(ways.map(urlOf))
    for (const [cut, left] of [ways, ways.toReversed()] as [TcpProxy, TcpProxy][]) {
      const before = rig.server.streamsOpened
      left.open()
      cut.close()
      await opensAnother(before, left)
      assert.equal(cut.count, 0)
      assert.equal((await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'running' }))).problem, undefined)
    }
    assert.deepEqual(rig.world.calls, ['create a', 'start a'])
  })

  it('an agent with two addresses of its service leaves an open connection on which nothing arrives', async () => {
    await start(ways.map(urlOf))
    const before = rig.server.streamsOpened
    ways[0].lose('answers')
    await opensAnother(before, ways[1])
    assert.equal((await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'stopped' }))).power, 'stopped')
  })

  it('an agent with two addresses of its service keeps a slow connection', async () => {
    rig.server.heartbeatSeconds = 60
    ways[0].delay(300)
    await start(ways.map(urlOf))
    assert.equal((await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'stopped' }))).power, 'stopped')
    assert.equal(rig.server.streamsOpened, 1)
    assert.equal(ways[1].count, 0)
  })

  it('an agent with two addresses of its service learns another address from the service, also for its next start', async () => {
    rig.server.servers = ways.map(urlOf)
    await start([urlOf(ways[0])])
    const before = rig.server.streamsOpened
    ways[0].close()
    await opensAnother(before, ways[1])
    const { apiUrls } = JSON.parse(await fs.readFile(path.join(rig.folder, 'node', 'node.json'), 'utf8'))
    assert.deepEqual(apiUrls.toSorted(), ways.map(urlOf).toSorted())
  })
})
