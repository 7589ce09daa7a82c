// The clock of the leading server jumps a day forwards, then a day back: there is no second leader, the node stays
// ready and its VM unchanged, and the servers continue their work as soon as the clock is right again.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../src/store/open.ts'
import { ServersRig } from '../support/processes/servers.ts'
import { eventually } from '../support/tools/eventually.ts'

const dayMs = 24 * 3_600_000
/** Longer than a lease, and than a silent node is waited for. */
const lookMs = 50_000
const vms = '/namespaces/svc-default/vms'

it('a clock that jumps a day changes nothing', { timeout: 600_000 }, async (t) => {
  await using rig = await ServersRig.start()
  const file = path.join(rig.folder, 'shift')
  const shifting = ['--import', path.resolve(import.meta.dirname, '../support/processes/shifted-clock.mjs')]
  process.env.CLOCK_SHIFT_FILE = file
  const leader = await rig.server('leader', shifting)
  const store = await openStore(rig.storeAddress)
  try {
    type Record = { holder: string; term: number; beat: number }
    const leads = async () => (await store.get('/leadership/controllers'))?.value as unknown as Record
    await eventually(async () => assert.ok((await leads())?.holder))
    const other = await rig.server('other')
    const agent = await rig.agent([leader.apiUrl, other.apiUrl], leader.joinToken)
    await agent.ready
    await other.call('POST', '/namespaces/svc-default/images', { name: 'empty', size: '1G' })
    const key = { 'idempotency-key': 'once' }
    const body = { image: 'empty', name: 'demo', cpu: 1, memory: 1 }
    const made = await other.call('POST', vms, body, key)
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const before = await leads()
    for (const shift of [dayMs, -dayMs]) {
      await fs.writeFile(file, String(shift))
      await eventually(async () => assert.equal(await fs.readFile(`${file}.seen`, 'utf8'), String(shift)))
      const { beat } = await leads()
      await sleep(lookMs)
      const now = await leads()
      assert.deepEqual([now.holder, now.term], [before.holder, before.term], 'the same leader')
      assert.ok(now.beat > beat, 'which renews its record')
      const { items } = (await other.call('GET', '/namespaces/svc-default/nodes')).body
      assert.equal(items[0].phase, 'READY')
      assert.equal((await other.call('GET', `${vms}/demo`)).body.status, 'Running')
      t.diagnostic(`${shift / dayMs} day: term ${now.term}, ${now.beat - beat} renewals`)
    }
    await fs.writeFile(file, '0')
    // The first answer was kept, or it would be refused: there is such a VM.
    const again = await other.call('POST', vms, body, key)
    assert.deepEqual([again.status, again.body.uid], [201, made.body.uid])
    await eventually(async () => assert.equal((await leader.call('GET', `${vms}/demo`)).status, 200))
    assert.equal((await other.call('DELETE', `${vms}/demo`)).status, 200)
  } finally {
    await store.close()
  }
})
