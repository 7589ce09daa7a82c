// Data that was set back is detected by the eras of its servers, even if it has grown since.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { silentLog } from '../../platform/log.ts'
import { type LastSeenStore, openLastSeenStore } from './last-seen-store.ts'

let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-last-seen-'))
})
after(() => fs.rm(folder, { recursive: true }))

const first = { uid: 'first', since: '0' }
const open = (): Promise<LastSeenStore> => openLastSeenStore(path.join(folder, 'none'), 'written', silentLog)
const hear = (lastSeen: LastSeenStore, revision: string, eras: { uid: string; since: string }[]) =>
  lastSeen.hear({ uid: 'data', revision, eras }, 'node', false)

describe('last seen store', () => {
  it('the last seen store accepts the data of a restarted server', async () => {
    const lastSeen = await open()
    assert.ok(hear(lastSeen, '10', [first]).isNewest)
    lastSeen.heard({ store: 'data', node: 'node', revision: '20' })
    const next = { uid: 'second', since: '21' }
    assert.deepEqual(pick(hear(lastSeen, '30', [first, next])), [true, false])
    assert.deepEqual(pick(hear(lastSeen, '40', [first, next, { uid: 'third', since: '35' }])), [true, false])
  })

  it('the last seen store detects a backup of the same era that has grown past the seen revision', async () => {
    const lastSeen = await open()
    hear(lastSeen, '10', [first])
    lastSeen.heard({ store: 'data', node: 'node', revision: '20' })
    assert.deepEqual(pick(hear(lastSeen, '99', [first, { uid: 'second', since: '15' }])), [false, true])
  })

  it('the last seen store detects a backup of an earlier era', async () => {
    const lastSeen = await open()
    hear(lastSeen, '30', [first, { uid: 'second', since: '21' }])
    assert.deepEqual(pick(hear(lastSeen, '99', [first, { uid: 'third', since: '12' }])), [false, true])
  })

  it('the last seen store accepts data that was set back from then on', async () => {
    const lastSeen = await open()
    hear(lastSeen, '50', [first])
    const restored = [first, { uid: 'second', since: '15' }]
    assert.deepEqual(pick(hear(lastSeen, '60', restored)), [false, true])
    assert.deepEqual(pick(hear(lastSeen, '70', [...restored, { uid: 'third', since: '65' }])), [true, false])
  })

  it('the last seen store survives a restart', async () => {
    const earlier = await openLastSeenStore(folder, 'synced', silentLog)
    hear(earlier, '20', [first])
    await earlier.stop()
    const later = await openLastSeenStore(folder, 'synced', silentLog)
    assert.deepEqual(pick(hear(later, '99', [first, { uid: 'second', since: '15' }])), [false, true])
    await later.stop()
  })
})

const pick = ({ isNewest, isReset }: { isNewest: boolean; isReset: boolean }) => [isNewest, isReset]
